select 'it''s', "a""b", $$x;$$, $t$ ' $t$, E'\'' , 1e5, .5, 0x1f -- ; 
 /* ; /* nested */ */ ; select 2