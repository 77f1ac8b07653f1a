-- Custom auth marks the thread of a call, and decides by the marks who may resume it.
--
-- JSON as bytes: jsonb refuses NUL, which a user's name may hold. Safe while old code runs: it
-- neither reads nor writes the column, and a call that it keeps has no marks.

ALTER TABLE intermezzo_calls ADD COLUMN metadata bytea;
