import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ModelFailure } from '@antiphon/providers-domain';
import type { ModelAnswer } from '@antiphon/providers-domain';
import { TextRedactor, answerNeedles, completeRedacted } from './redact-output.js';
import { createRedactor } from '@antiphon/observability';

const KEY = 'sk-CANARY-0123456789-"quoted"';
const redaction = { needles: answerNeedles([KEY]), redact: createRedactor([KEY]) };

const answerOf = (more: Partial<ModelAnswer> = {}): ModelAnswer => ({
  text: '',
  thought: '',
  toolCalls: [],
  finishReason: 'stop',
  usage: null,
  ...more,
});

/** Splits a text at these places. */
const split = (text: string, places: readonly number[]): string[] => {
  const ends = [...new Set(places.map((place) => place % (text.length + 1)))].sort((a, b) => a - b);
  return [0, ...ends].map((from, index) => text.slice(from, ends[index] ?? text.length));
};

const redactPieces = (pieces: readonly string[]): string => {
  let out = '';
  const redactor = new TextRedactor(redaction.needles, (text) => (out += text));
  for (const piece of pieces) redactor.add(piece);
  redactor.end();
  expect(redactor.text).toBe(out);
  return out;
};

describe('TextRedactor', () => {
  it('redacts a secret that is split at any places', () =>
    fc.assert(
      fc.property(
        fc.constantFrom(...redaction.needles),
        fc.string(),
        fc.string(),
        fc.array(fc.nat(200), { maxLength: 8 }),
        (secret, before, after, places) => {
          const out = redactPieces(split(`${before}${secret}${after}`, places));
          expect(out).not.toContain(secret);
          expect(out).toContain('[redacted]');
          expect(out.endsWith(after)).toBe(true);
        },
      ),
    ));

  it('changes no other text', () =>
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.array(fc.nat(200)), (text, places) => {
        expect(redactPieces(split(text, places))).toBe(text);
      }),
    ));

  it('redacts a secret that is cut off at the end, and retains a short start', () => {
    expect(redactPieces(['the key is ', KEY.slice(0, 20)])).toBe('the key is [redacted]');
    expect(redactPieces(['the key is ', KEY.slice(0, 3)])).toBe('the key is sk-');
  });

  it('keeps back at most the length of the longest secret', () => {
    let out = '';
    const redactor = new TextRedactor(redaction.needles, (text) => (out += text));
    const longest = Math.max(...redaction.needles.map(({ length }) => length));
    for (let sent = 0; sent < 10_000; sent += 7) {
      redactor.add('s'.repeat(7));
      expect(sent + 7 - out.length).toBeLessThan(longest);
    }
  });
});

describe('an answer that echoes the key', () => {
  it('reaches the sink, the answer and its tool calls redacted', async () => {
    const sunk = { text: '', thought: '' };
    const sink = {
      onText: (delta: string) => void (sunk.text += delta),
      onThought: (delta: string) => void (sunk.thought += delta),
    };
    const answer = await completeRedacted(
      async ({ onText, onThought }) => {
        for (const piece of split(`key: ${KEY}.`, [3, 9, 17])) onText(piece);
        for (const piece of split(`think ${encodeURIComponent(KEY)}`, [12, 20])) onThought(piece);
        return answerOf({
          text: `key: ${KEY}.`,
          thought: 'think',
          model: KEY,
          toolCalls: [{ providerCallId: KEY, name: 'echo', input: { [KEY]: [`a ${KEY}`, { b: KEY }, 1] } }],
        });
      },
      sink,
      redaction,
    );
    expect(sunk).toEqual({ text: 'key: [redacted].', thought: 'think [redacted]' });
    expect(answer).toMatchObject({ ...sunk, model: '[redacted]' });
    expect(JSON.stringify(answer)).not.toContain('CANARY');
  });

  it('is redacted in a failure and in the text before it', async () => {
    let text = '';
    const sink = { onText: (delta: string) => void (text += delta), onThought: () => undefined };
    const failing = completeRedacted(
      async ({ onText }) => {
        onText(`so far ${KEY.slice(0, 18)}`);
        throw new ModelFailure({
          reason: 'provider_protocol',
          message: `no tool named ${KEY}`,
          dispatched: true,
          retryable: true,
          usage: { inputTokens: 1, outputTokens: 2 },
        });
      },
      sink,
      redaction,
    );
    await expect(failing).rejects.toMatchObject({
      message: 'no tool named [redacted]',
      reason: 'provider_protocol',
      dispatched: true,
      usage: { inputTokens: 1, outputTokens: 2 },
    });
    expect(text).toBe('so far [redacted]');
  });

  it('is not searched for words that are too short to be a key', () =>
    expect(answerNeedles(['word', 'sixteen-chars-ok'])).toContain('sixteen-chars-ok'));
});
