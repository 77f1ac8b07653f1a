-- A call that waits for a person lives in rows, so that any instance can go on with it.
--
-- One row per paused call, one per round of its questions. The agent's own state is in LangGraph's
-- tables (thread_id = the call's id), which LangGraph makes. Safe while old code runs: all new.

-- The clock of every lifetime. A function, so that a test can move time without waiting.
CREATE FUNCTION intermezzo_now() RETURNS timestamptz
    LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT now()';

CREATE TABLE intermezzo_calls (
    id uuid PRIMARY KEY,
    agent text NOT NULL,
    -- Past this moment no request finds the call; the sweep frees the space some time later.
    expires_at timestamptz NOT NULL
);

CREATE INDEX intermezzo_calls_expires_at ON intermezzo_calls (expires_at);

CREATE TABLE intermezzo_rounds (
    call_id uuid NOT NULL REFERENCES intermezzo_calls ON DELETE CASCADE,
    number integer NOT NULL CHECK (number > 0),
    -- withheld: this round exists, but no client that can show it has come yet
    -- asked:    the questions are out, nobody is at work
    -- claimed:  one holder runs the agent, until claimed_until
    -- settled:  it led to the next round or, with an outcome, to the end of the call
    state text NOT NULL CHECK (state IN ('withheld', 'asked', 'claimed', 'settled')),
    keys text[] NOT NULL CHECK (cardinality(keys) > 0),
    modes text[] NOT NULL CHECK (modes <@ ARRAY['form', 'url'] AND cardinality(modes) > 0),
    questions bytea NOT NULL,
    -- The fence: only the holder whose claim stands here may write.
    claim uuid,
    claimed_until timestamptz,
    -- A keyed digest per key, from the moment that anything may have been done with these answers.
    answers jsonb,
    -- The result of the call; none in a settled round means: the next round.
    outcome bytea,
    PRIMARY KEY (call_id, number),
    CONSTRAINT intermezzo_claimed_has_holder
        CHECK ((state = 'claimed') = (claim IS NOT NULL)
           AND (state = 'claimed') = (claimed_until IS NOT NULL)),
    CONSTRAINT intermezzo_open_round_is_unanswered
        CHECK (state NOT IN ('withheld', 'asked') OR answers IS NULL),
    CONSTRAINT intermezzo_settled_is_answered
        CHECK (state <> 'settled' OR answers IS NOT NULL),
    CONSTRAINT intermezzo_only_settled_has_outcome
        CHECK (state = 'settled' OR outcome IS NULL)
) WITH (fillfactor = 80);

-- One runner: a call has at most one round that can be claimed.
CREATE UNIQUE INDEX intermezzo_one_open_round ON intermezzo_rounds (call_id)
    WHERE state <> 'settled';
