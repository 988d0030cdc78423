-- id: 1X
-- title:
-- chart: bar
select