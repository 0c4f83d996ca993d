-- Words of a text, as an index has them. Punctuation of ASCII separates words, so that a path or an address is found by
-- each part of it. Each Chinese, Japanese or Korean character is a word.
create or replace function antiphon_search_words(p_text text) returns tsvector
language sql immutable parallel safe as $$
  select to_tsvector('pg_catalog.simple', regexp_replace(
    regexp_replace(p_text, '[\x01-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+', ' ', 'g'),
    '([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])', ' \1 ', 'g'))
$$;
