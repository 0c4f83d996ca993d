import type { RawToolCall } from '../transport/answer-builder.js';
import { fieldsOf, textOf } from '../transport/fields.js';

interface Growing {
  readonly index: unknown;
  id: string;
  name: string;
  json: string;
}

/** Puts tool calls together from the pieces of a stream. */
export interface ToolCallAssembly {
  add(piece: unknown): void;
  result(): readonly RawToolCall[];
}

/** A piece with a name and an id of its own begins another call, even where the server gives every call the same index. */
const beginsAnother = (call: Growing, id: string, name: string): boolean =>
  id !== '' && name !== '' && call.id !== '' && call.id !== id;

const jsonOf = (given: unknown): string => {
  if (typeof given === 'string') return given;
  // A few servers send the arguments as an object instead of as text.
  return given === undefined || given === null ? '' : JSON.stringify(given);
};

/**
 * Pieces belong together by `index`; without one, a piece continues the last call, or begins one when it has a name.
 * Ids and names are taken from their first piece: some servers repeat them with every one.
 */
export const assembleToolCalls = (): ToolCallAssembly => {
  const calls: Growing[] = [];
  const find = (index: unknown, name: string): Growing | undefined => {
    if (index !== undefined && index !== null) return calls.findLast((call) => call.index === index);
    return name === '' ? calls.at(-1) : undefined;
  };
  return {
    add: (piece) => {
      const fields = fieldsOf(piece);
      const target = fieldsOf(fields?.['function']);
      if (fields === undefined || (target === undefined && fields['id'] === undefined)) return;
      const [index, id, name] = [fields['index'], textOf(fields['id']), textOf(target?.['name'])];
      let call = find(index, name);
      if (call === undefined || beginsAnother(call, id, name))
        calls.push((call = { index, id, name, json: '' }));
      call.id ||= id;
      call.name ||= name;
      call.json += jsonOf(target?.['arguments']);
    },
    result: () => calls,
  };
};
