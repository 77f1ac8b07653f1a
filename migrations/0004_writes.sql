-- What a runner writes, as functions: a pause, a flush, and a round that is settled.
--
-- For the reason that claiming has one: planning these statements takes PostgreSQL longer than
-- running them. Safe while old code runs: all new.
--
-- Whatever is written under a claim goes through a fence: the round's row comes first, and where
-- another claim stands there nothing is written and the answer is false.

-- LangGraph's rows of a call. A row is an array of texts; the bytes of all rows stand beside them,
-- in the same order. Versions of a channel never change, and a write may be one that came before.
CREATE FUNCTION intermezzo_keep(
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
CREATE FUNCTION intermezzo_pause(
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
CREATE FUNCTION intermezzo_flush(
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

-- A claimed round is settled: with the call's outcome, or, when there is none, by the next round.
CREATE FUNCTION intermezzo_settle(
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

CREATE FUNCTION intermezzo_next(
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
