-- id: X1
-- title: A title
-- question: A question?
-- param: days duration = 30d | how far back
-- param: who text | whose
-- severity: high
-- note: this

select 1;
select * from report
