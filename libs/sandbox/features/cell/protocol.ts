import type { CallAbilities } from './wasi-stubs.js';

/**
 * Messages on the pipes between the service and a cell. A frame is two little-endian u32 (length of
 * the JSON, length of the body), the JSON, and the raw bytes of the body. Modules, inputs and
 * outputs are bodies, so they are never escaped or encoded.
 */
export type CellRequest =
  /** Body: the module, which is compiled and instantiated once to test it. */
  | { readonly type: 'load'; readonly id: number; readonly digest: string }
  /** Body: the input. */
  | {
      readonly type: 'call';
      readonly id: number;
      readonly digest: string;
      readonly entry: string;
      readonly settings?: CallSettings;
      readonly abilities?: CallAbilities;
    }
  /** Response to `store`. Body: the value, or the keys as JSON. */
  | { readonly type: 'store-answer'; readonly id: number; readonly answer: StoreAnswer }
  /** Response to `http`. Body: the page, or the error text of `failed`, whose status is 0. */
  | { readonly type: 'http-answer'; readonly id: number; readonly answer: HttpResponseHead };

/**
 * Result of a page request. `refused`: the plug-in has no permission, and its call ends. `failed`:
 * the request was allowed and failed.
 */
export type HttpResponseHead =
  | { readonly end: 'answered'; readonly status: number; readonly contentType: string }
  | { readonly end: 'failed' }
  | { readonly end: 'refused'; readonly reason: string };

/** Use of a store by a call. `list` has a prefix as its key. */
export interface StoreRequest {
  readonly op: 'get' | 'set' | 'delete' | 'list';
  readonly store: string;
  readonly key: string;
}

/**
 * Result of the use of a store. `full`: a quota refused the change. `refused`: the plug-in may not
 * use the store, or it could not be used, and the call ends.
 */
export type StoreAnswer =
  | { readonly end: 'done'; readonly found: boolean }
  | { readonly end: 'full' }
  | { readonly end: 'refused'; readonly reason: string };

/** Values of a call that the plug-in can read with Extism's `config_get`. */
export type CallSettings = Readonly<Record<string, string>>;

export type LogLine = { readonly level: 'debug' | 'info' | 'warn' | 'error'; readonly text: string };

/** Facts that a cell reports about itself before any plug-in has run in it. */
export interface CellFacts {
  /** Null where the platform has no user ids. */
  readonly uid: number | null;
  /** Names of network interfaces that are up. */
  readonly interfaces: readonly string[];
  readonly fileAccess: boolean;
}

export type CellReply =
  | { readonly type: 'ready'; readonly facts: CellFacts }
  | {
      readonly type: 'loaded';
      readonly id: number;
      readonly compileMs: number;
      readonly instantiateMs: number;
    }
  | { readonly type: 'refused'; readonly id: number; readonly message: string }
  | { readonly type: 'log'; readonly id: number; readonly line: LogLine }
  /**
   * Requests a page with Extism's JSON request. Body: that of the request. The cell blocks
   * until the response arrives.
   */
  | { readonly type: 'http'; readonly id: number; readonly request: string }
  /** Uses a store. Body: the value to set. The cell blocks until the response arrives. */
  | { readonly type: 'store'; readonly id: number; readonly request: StoreRequest }
  /** The call exceeded its limit of log lines; sent once. */
  | { readonly type: 'flood'; readonly id: number }
  /** Body: the output, or the error text when `failed`. */
  | {
      readonly type: 'returned';
      readonly id: number;
      readonly status: number;
      readonly failed: boolean;
      readonly instantiateMs: number;
      readonly suppressed: number;
    }
  | {
      readonly type: 'ended';
      readonly id: number;
      readonly end: 'trapped' | 'memory' | 'output' | 'denied';
      readonly message: string;
      readonly suppressed: number;
    };

const HEADER_BYTES = 8;
/** Limits of a reply: a plug-in may control its cell, so both are checked before any allocation. */
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

/** Decodes a cell's output and passes each complete frame to `onFrame`. */
export class ReplyDecoder {
  private chunks: Buffer[] = [];
  private bufferedBytes = 0;
  private neededBytes = HEADER_BYTES;

  constructor(private readonly onFrame: (frame: ReplyFrame) => void) {}

  /** Throws when the cell breaks the protocol; its stream is unreadable from then on. */
  push(chunk: Buffer): void {
    this.chunks.push(chunk);
    this.bufferedBytes += chunk.length;
    // Joined only once a frame is complete, so that each chunk of a large body is copied once.
    if (this.bufferedBytes < this.neededBytes) return;
    let next: Buffer | null = this.chunks.length === 1 ? chunk : Buffer.concat(this.chunks);
    let rest = next;
    while (next !== null) {
      rest = next;
      next = this.decodeFrame(next);
    }
    this.chunks = rest.length > 0 ? [rest] : [];
    this.bufferedBytes = rest.length;
  }

  /** Returns the bytes after the first frame, or null when that frame is incomplete. */
  private decodeFrame(buffer: Buffer): Buffer | null {
    if (buffer.length < HEADER_BYTES) return null;
    const json = buffer.readUInt32LE(0);
    const body = buffer.readUInt32LE(4);
    if (json > MAX_JSON_BYTES || body > MAX_BODY_BYTES)
      throw new Error(`a frame of ${json} and ${body} bytes`);
    this.neededBytes = HEADER_BYTES + json + body;
    if (buffer.length < this.neededBytes) return null;
    const reply = JSON.parse(buffer.toString('utf8', HEADER_BYTES, HEADER_BYTES + json)) as CellReply;
    this.onFrame({ reply, body: buffer.subarray(HEADER_BYTES + json, this.neededBytes) });
    const rest = buffer.subarray(this.neededBytes);
    this.neededBytes = HEADER_BYTES;
    return rest;
  }
}
