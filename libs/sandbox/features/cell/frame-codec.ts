import type { CellReply, CellRequest } from './protocol.js';

const HEADER_BYTES = 8;
/** A cell may be taken over by its guest: what it sends is bounded before anything is allocated for it. */
const MAX_JSON_BYTES = 64 * 1024;
const MAX_BODY_BYTES = 1024 * 1024;

export interface ReplyFrame {
  readonly reply: CellReply;
  readonly body: Uint8Array;
}

/** Encodes a request as one buffer. */
export const encodeRequest = (request: CellRequest, body: Uint8Array): Buffer => {
  const json = Buffer.from(JSON.stringify(request));
  const header = Buffer.allocUnsafe(HEADER_BYTES);
  header.writeUInt32LE(json.length, 0);
  header.writeUInt32LE(body.length, 4);
  return Buffer.concat([header, json, body]);
};

/**
 * Collects chunks and gives each whole frame to `onFrame`. Throws when a cell breaks the protocol,
 * after which its stream cannot be read any more.
 */
export const createReplyDecoder = (onFrame: (frame: ReplyFrame) => void): ((chunk: Buffer) => void) => {
  let chunks: Buffer[] = [];
  let have = 0;
  let need = HEADER_BYTES;
  const takeFrame = (buffer: Buffer): Buffer | null => {
    if (buffer.length < HEADER_BYTES) return null;
    const json = buffer.readUInt32LE(0);
    const body = buffer.readUInt32LE(4);
    if (json > MAX_JSON_BYTES || body > MAX_BODY_BYTES)
      throw new Error(`a frame of ${json} and ${body} bytes`);
    need = HEADER_BYTES + json + body;
    if (buffer.length < need) return null;
    const reply = JSON.parse(buffer.toString('utf8', HEADER_BYTES, HEADER_BYTES + json)) as CellReply;
    onFrame({ reply, body: buffer.subarray(HEADER_BYTES + json, need) });
    const rest = buffer.subarray(need);
    need = HEADER_BYTES;
    return rest;
  };
  return (chunk) => {
    chunks.push(chunk);
    have += chunk.length;
    // Joined only once a frame is whole, so that a large body is not copied again with every chunk.
    if (have < need) return;
    let rest: Buffer | null = chunks.length === 1 ? chunk : Buffer.concat(chunks);
    let left = rest;
    while (rest !== null) {
      left = rest;
      rest = takeFrame(rest);
    }
    chunks = left.length > 0 ? [left] : [];
    have = left.length;
  };
};
