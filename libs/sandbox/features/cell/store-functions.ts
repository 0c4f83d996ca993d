import type { BlockMemory, Violate } from './block-memory.js';
import type { StoreAnswer, StoreRequest } from './protocol.js';

/** Requests a value of a store, or a change of one, from the service for the plug-in. */
export type UseStore = (
  request: StoreRequest,
  value: Uint8Array,
) => { readonly answer: StoreAnswer; readonly body: Uint8Array };

/** Parts of the running call that the functions of stores use. */
interface StoreCall {
  readonly blocks: () => BlockMemory;
  readonly store: () => UseStore;
  readonly violate: Violate;
}

const MAX_STORE_NAME_BYTES = 64;
const MAX_KEY_BYTES = 256;
/** Status of a change that a quota of the store refused. */
const STORE_FULL = 1;
const EMPTY_VALUE = new Uint8Array(0);

/**
 * Functions of `store:` capabilities. A key without a value is the block 0. A block of no bytes is
 * 0 too, so no value is empty.
 */
export const createStoreFunctions = ({ blocks, store, violate }: StoreCall) => {
  const readText = (offset: bigint, maxBytes: number, subject: string): string => {
    const size = blocks().sizeOf(offset);
    if (size > maxBytes) violate('denied', `store: a ${subject} of ${size} bytes, at most ${maxBytes}`);
    return new TextDecoder().decode(blocks().read(offset));
  };
  const use = (op: StoreRequest['op'], name: bigint, key: bigint, value: Uint8Array = EMPTY_VALUE) => {
    const request = {
      ...{ op, store: readText(name, MAX_STORE_NAME_BYTES, 'name') },
      key: readText(key, MAX_KEY_BYTES, 'key'),
    };
    const { answer, body } = store()(request, value);
    if (answer.end === 'refused') violate('denied', answer.reason);
    return { answer, body };
  };
  const toBlock = (body: Uint8Array): bigint => (body.length === 0 ? 0n : blocks().store(body));
  return {
    store_get: (name: bigint, key: bigint) => toBlock(use('get', name, key).body),
    store_set: (name: bigint, key: bigint, value: bigint) =>
      use('set', name, key, blocks().read(value)).answer.end === 'full' ? STORE_FULL : 0,
    store_delete: (name: bigint, key: bigint) => {
      const { answer } = use('delete', name, key);
      return answer.end === 'done' && answer.found ? 1 : 0;
    },
    store_list: (name: bigint, prefix: bigint) => toBlock(use('list', name, prefix).body),
  };
};
