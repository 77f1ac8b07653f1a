-- What every call needs of the database, as functions: to pause, to claim a round and load its call,
-- to flush, and to settle.
--
-- Behind a transaction pooler nothing can be prepared, and PostgreSQL takes longer to plan these
-- statements than to run them. It keeps the plans of a function's statements, for each of its own
-- processes. Safe while old code runs: all new. What is here may be replaced by something that old
-- code can call; anything else gets a name of its own.

-- Claiming, drawn in time:
--
--     claim        renewed      renewed       the holder dies       lapses
--     ├─────────────┼────────────┼─────────────────────┼────────────────┤  anybody may claim again
--     now           + 3 s        + 6 s                           claimed_until: + 16 s
--
-- On Lambda nothing renews: the claim lasts as long as the platform lets the process live.
CREATE OR REPLACE FUNCTION intermezzo_claim(
    the_call uuid,
    the_number integer,
    the_claim uuid,
    the_agent text,
    given text[],
    able text[],
    lease interval
) RETURNS TABLE (
    -- The round as it is found, and the one after it.
    state text,
    questions bytea,
    answers jsonb,
    outcome bytea,
    won boolean,
    lapsed boolean,
    "next" bytea,
    next_state text,
    metadata bytea,
    -- The call's rows in LangGraph's tables, one array a column. NULL for those who have not won.
    c_ns text[], c_id text[], c_parent text[], c_checkpoint text[], c_metadata text[],
    b_ns text[], b_channel text[], b_version text[], b_type text[], b_blob bytea[],
    w_ns text[], w_id text[], w_task text[], w_idx integer[], w_path text[], w_channel text[],
    w_type text[], w_blob bytea[]
) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
    took_over boolean;
BEGIN
    UPDATE intermezzo_rounds AS r
    SET state = 'claimed', claim = the_claim, claimed_until = intermezzo_now() + lease
    FROM intermezzo_calls AS c, intermezzo_rounds AS found
    WHERE r.call_id = the_call AND r.number = the_number
      AND found.call_id = the_call AND found.number = the_number
      AND c.id = r.call_id AND c.agent = the_agent AND c.expires_at > intermezzo_now()
      AND r.keys <@ given AND r.modes <@ able
      AND (r.state = 'asked' OR r.state = 'claimed' AND r.claimed_until <= intermezzo_now())
    -- A claim that was given back ended at no time at all: see the store.
    RETURNING found.state = 'claimed' AND found.claimed_until > '-infinity' INTO took_over;

    -- A statement of its own: an UPDATE that waited for a row sees its newest version, while
    -- anything else in the same statement would see the call as it was before the wait.
    RETURN QUERY
    WITH seen AS (
        SELECT r.state, r.questions, r.answers, r.outcome,
               r.claim IS NOT DISTINCT FROM the_claim AS won, coalesce(took_over, false) AS lapsed,
               n.questions AS "next", n.state AS next_state, c.metadata
        FROM intermezzo_calls AS c
        JOIN intermezzo_rounds AS r ON r.call_id = c.id AND r.number = the_number
        LEFT JOIN intermezzo_rounds AS n ON n.call_id = c.id AND n.number = r.number + 1
        WHERE c.id = the_call AND c.agent = the_agent AND c.expires_at > intermezzo_now()
    ), stored AS (
        -- By step, not by id: an id tells the time, and clocks differ from machine to machine.
        SELECT h.checkpoint_ns AS ns, h.checkpoint_id AS id, h.parent_checkpoint_id AS parent,
               h.checkpoint, h.metadata,
               row_number() OVER (
                   PARTITION BY h.checkpoint_ns
                   ORDER BY (h.metadata ->> 'step')::integer DESC, h.checkpoint_id DESC) AS age,
               bool_or(h.metadata ? 'counters_since_delta_snapshot') OVER (
                   PARTITION BY h.checkpoint_ns) AS delta
        FROM seen JOIN checkpoints AS h ON seen.won AND h.thread_id = the_call::text
    ), heads AS MATERIALIZED (
        -- The newest checkpoint of each namespace; with a DeltaChannel, whose value is spread over
        -- a chain of checkpoints, all of them. A graph that a node called has a colon in its
        -- namespace, and what it kept is read in the superstep of that node alone.
        SELECT ns, id, parent, stored.checkpoint, stored.metadata FROM stored
        WHERE (age = 1 OR delta)
          AND (strpos(ns, ':') = 0
               OR stored.metadata -> 'parents' ->> '' = (
                    SELECT root.id FROM stored AS root WHERE root.ns = '' AND root.age = 1))
    ), blobs AS (
        SELECT DISTINCT ON (b.checkpoint_ns, b.channel, b.version)
               b.checkpoint_ns AS ns, b.channel, b.version, b.type, b.blob
        FROM heads
        CROSS JOIN LATERAL jsonb_each_text(heads.checkpoint -> 'channel_versions')
            AS v(channel, version)
        JOIN checkpoint_blobs AS b
          ON b.thread_id = the_call::text AND b.checkpoint_ns = heads.ns
         AND b.channel = v.channel AND b.version = v.version
        WHERE b.blob IS NOT NULL
    )
    SELECT seen.*, of_checkpoints.*, of_blobs.*, of_writes.*
    FROM seen,
    (
        SELECT array_agg(ns), array_agg(id), array_agg(parent), array_agg(heads.checkpoint::text),
               array_agg(heads.metadata::text)
        FROM heads
    ) AS of_checkpoints,
    (
        SELECT array_agg(ns), array_agg(channel), array_agg(version), array_agg(type),
               array_agg(blob)
        FROM blobs
    ) AS of_blobs,
    (
        SELECT array_agg(w.checkpoint_ns), array_agg(w.checkpoint_id), array_agg(w.task_id),
               array_agg(w.idx), array_agg(w.task_path), array_agg(w.channel), array_agg(w.type),
               array_agg(w.blob)
        FROM heads JOIN checkpoint_writes AS w
          ON w.thread_id = the_call::text AND w.checkpoint_ns = heads.ns
         AND w.checkpoint_id = heads.id
    ) AS of_writes;
END
$$;

-- Whatever is written under a claim goes through a fence: the round's row comes first, and where
-- another claim stands there nothing is written and the answer is false.

-- LangGraph's rows of a call. A row is an array of texts; the bytes of all rows stand beside them,
-- in the same order. Versions of a channel never change, and a write may be one that came before.
CREATE OR REPLACE FUNCTION intermezzo_keep(
    the_call uuid,
    checkpoints text[],  -- namespace, id, parent id, checkpoint, metadata
    blobs text[],        -- namespace, channel, version, type
    blob_bytes bytea[],
    writes text[],       -- namespace, checkpoint id, task id, index, task path, channel, type
    write_bytes bytea[]
) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF cardinality(checkpoints) > 0 THEN
        INSERT INTO checkpoints
            (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
        SELECT the_call::text, checkpoints[i][1], checkpoints[i][2], checkpoints[i][3],
               checkpoints[i][4]::jsonb, checkpoints[i][5]::jsonb
        FROM generate_subscripts(checkpoints, 1) AS i
        ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id)
        DO UPDATE SET checkpoint = EXCLUDED.checkpoint, metadata = EXCLUDED.metadata;
    END IF;
    IF cardinality(blobs) > 0 THEN
        INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
        SELECT the_call::text, blobs[i][1], blobs[i][2], blobs[i][3], blobs[i][4], blob_bytes[i]
        FROM generate_subscripts(blobs, 1) AS i
        ON CONFLICT (thread_id, checkpoint_ns, channel, version) DO NOTHING;
    END IF;
    IF cardinality(writes) > 0 THEN
        INSERT INTO checkpoint_writes
            (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, task_path, channel, type, blob)
        SELECT the_call::text, writes[i][1], writes[i][2], writes[i][3], writes[i][4]::integer,
               writes[i][5], writes[i][6], writes[i][7], write_bytes[i]
        FROM generate_subscripts(writes, 1) AS i
        ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
        DO UPDATE SET channel = EXCLUDED.channel, type = EXCLUDED.type, blob = EXCLUDED.blob;
    END IF;
END
$$;

-- A call that waits at its first round.
CREATE OR REPLACE FUNCTION intermezzo_pause(
    the_call uuid,
    the_agent text,
    ttl interval,
    its_metadata bytea,
    its_keys text[], its_modes text[], its_questions bytea,
    checkpoints text[], blobs text[], blob_bytes bytea[], writes text[], write_bytes bytea[]
) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO intermezzo_calls (id, agent, expires_at, metadata)
    VALUES (the_call, the_agent, intermezzo_now() + ttl, its_metadata);
    INSERT INTO intermezzo_rounds (call_id, number, state, keys, modes, questions)
    VALUES (the_call, 1, 'asked', its_keys, its_modes, its_questions);
    PERFORM intermezzo_keep(the_call, checkpoints, blobs, blob_bytes, writes, write_bytes);
END
$$;

-- What finished under a claim, and the answers as those that the run goes on with.
CREATE OR REPLACE FUNCTION intermezzo_flush(
    the_call uuid,
    the_number integer,
    the_claim uuid,
    its_answers jsonb,
    checkpoints text[], blobs text[], blob_bytes bytea[], writes text[], write_bytes bytea[]
) RETURNS boolean LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE intermezzo_rounds SET answers = its_answers
    WHERE call_id = the_call AND number = the_number AND claim = the_claim;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM intermezzo_keep(the_call, checkpoints, blobs, blob_bytes, writes, write_bytes);
    RETURN true;
END
$$;

-- A claimed round is settled with the call's outcome, or without one, when the next round follows.
CREATE OR REPLACE FUNCTION intermezzo_settle(
    the_call uuid,
    the_number integer,
    the_claim uuid,
    its_answers jsonb,
    its_outcome bytea,
    ttl interval
) RETURNS boolean LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE intermezzo_rounds
    SET state = 'settled', claim = NULL, claimed_until = NULL,
        answers = its_answers, outcome = its_outcome
    WHERE call_id = the_call AND number = the_number AND claim = the_claim;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE intermezzo_calls SET expires_at = intermezzo_now() + ttl WHERE id = the_call;
    RETURN true;
END
$$;

-- A claimed round is settled, and the next one stands in its place.
CREATE OR REPLACE FUNCTION intermezzo_next(
    the_call uuid,
    the_number integer,
    the_claim uuid,
    its_answers jsonb,
    ttl interval,
    next_state text, next_keys text[], next_modes text[], next_questions bytea,
    checkpoints text[], blobs text[], blob_bytes bytea[], writes text[], write_bytes bytea[]
) RETURNS boolean LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT intermezzo_settle(the_call, the_number, the_claim, its_answers, NULL, ttl) THEN
        RETURN false;
    END IF;
    INSERT INTO intermezzo_rounds (call_id, number, state, keys, modes, questions)
    VALUES (the_call, the_number + 1, next_state, next_keys, next_modes, next_questions);
    PERFORM intermezzo_keep(the_call, checkpoints, blobs, blob_bytes, writes, write_bytes);
    RETURN true;
END
$$;
