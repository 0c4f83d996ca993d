import { ToolCallBounds, fieldsOf, textOf } from '../transport/answer-builder.js';
import type { Fields, RawToolCall } from '../transport/answer-builder.js';
import { parseJson } from '../transport/error-text.js';

interface PartialToolCall {
  readonly index: unknown;
  id: string;
  name: string;
  json: string;
  /** Further fields that the server wants back with the call, such as a signature. */
  extras: Fields;
  /** Number of checks whether its arguments are whole. */
  checks: number;
}

interface Piece {
  readonly index: unknown;
  readonly id: string;
  readonly name: string;
  readonly json: string;
}

const isMissing = (value: unknown): boolean => value === undefined || value === null;

const toJson = (given: unknown): string => {
  if (typeof given === 'string') return given;
  // A few servers send the arguments as an object instead of as text.
  return isMissing(given) ? '' : JSON.stringify(given);
};

/** Bounds of the checks whether arguments are whole, which parse them. */
const MAX_CHECKS = 64;
const MAX_CHECKED_CHARS = 100_000;

const isWhole = (call: PartialToolCall): boolean => {
  const { json, checks } = call;
  if (checks === MAX_CHECKS || json.length > MAX_CHECKED_CHARS || !json.trimEnd().endsWith('}')) return false;
  call.checks++;
  return parseJson(json) !== undefined;
};

/** Returns true for a last piece that repeats a whole call, as some servers send it. */
const repeats = (call: PartialToolCall, { id, name, json }: Piece): boolean =>
  (id === '' || id === call.id) && name === call.name && (json === '' || json === call.json) && isWhole(call);

/**
 * Returns true for a piece with a name that begins another call. Some servers give every call the
 * same index, and some of them no id either.
 */
const startsNewCall = (call: PartialToolCall, { id, name, json }: Piece): boolean => {
  if (name === '' || call.name === '') return false;
  if (id !== '' && call.id !== '') return id !== call.id;
  return id === '' && call.id === '' && json !== '' && isWhole(call);
};

/** Fields with a signature: of Gemini's compatible endpoint, of LiteLLM and of other proxies. */
const EXTRA_FIELDS = ['extra_content', 'provider_specific_fields', 'thought_signature'] as const;

const extrasOf = (fields: Fields): Fields =>
  Object.fromEntries(
    EXTRA_FIELDS.filter((name) => !isMissing(fields[name])).map((name) => [name, fields[name]]),
  );

/**
 * Assembles tool calls from the pieces of a stream. Pieces belong together by `index`, and without
 * one by id. Without both, a piece with a name starts a call, and any other continues the last. The
 * first id wins.
 */
export class ToolCallAssembly {
  private readonly calls: PartialToolCall[] = [];
  /** The newest call of each index. */
  private readonly newest = new Map<unknown, PartialToolCall>();
  private readonly bounds = new ToolCallBounds();

  /** Adds a part of the list `tool_calls`. */
  add(given: unknown): void {
    const fields = fieldsOf(given);
    const target = fieldsOf(fields?.['function']);
    if (fields === undefined || (target === undefined && fields['id'] === undefined)) return;
    this.addPiece(
      {
        index: fields['index'],
        id: textOf(fields['id']),
        name: textOf(target?.['name']),
        json: toJson(target?.['arguments']),
      },
      extrasOf(fields),
    );
  }

  /** Adds a part of `function_call`, the older form with one call. */
  addFunction(given: unknown): void {
    const target = fieldsOf(given);
    if (target === undefined) return;
    const [name, json] = [textOf(target['name']), toJson(target['arguments'])];
    this.addPiece({ index: 'function_call', id: '', name, json }, {});
  }

  result(): readonly (RawToolCall & { readonly extras: Fields })[] {
    // An empty part at the end is no call.
    return this.calls.filter(({ id, name, json }) => id !== '' || name !== '' || json !== '');
  }

  private addPiece(piece: Piece, extras: Fields): void {
    const found = this.find(piece);
    if (found !== undefined && repeats(found, piece)) return void this.addExtras(found, extras);
    const call = found === undefined || startsNewCall(found, piece) ? this.begin(piece) : found;
    call.id ||= piece.id;
    // A name may arrive in parts, and may be repeated with every part.
    if (call.name !== piece.name && call.json === '') call.name += piece.name;
    this.addExtras(call, extras);
    this.bounds.addInput(piece.json);
    call.json += piece.json;
  }

  private addExtras(call: PartialToolCall, extras: Fields): void {
    call.extras = { ...call.extras, ...extras };
  }

  private begin({ index, id }: Piece): PartialToolCall {
    this.bounds.addCall();
    const call = { index, id, name: '', json: '', extras: {}, checks: 0 };
    this.calls.push(call);
    this.newest.set(index, call);
    return call;
  }

  private find({ index, id, name }: Piece): PartialToolCall | undefined {
    if (!isMissing(index)) return this.newest.get(index);
    const sameId = id === '' ? undefined : this.calls.find((call) => call.id === id);
    if (sameId !== undefined) return sameId;
    return name === '' ? this.calls.at(-1) : undefined;
  }
}
