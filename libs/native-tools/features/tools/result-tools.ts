import type pg from 'pg';
import type { NATIVE_INPUT, NativeCall } from '@antiphon/conversation-features';
import { resultOf } from '@antiphon/conversation-features';
import { causedError } from '@antiphon/contracts/causes';
import type { BlobStore } from '@antiphon/database';
import { TEXT_DEADLINE_MS } from '@antiphon/service-host/worker-pool';
import { notFound } from '@antiphon/kernel';
import type { z } from 'zod';
import { toolJobs } from '../text-work.js';
import { findResult } from './find-result.js';
import type { FoundResult } from './find-result.js';

export interface ResultToolsDeps {
  readonly pool: pg.Pool;
  readonly blobs: Pick<BlobStore, 'read' | 'readPart'>;
}

type Input<N extends 'read_result' | 'search_result'> = z.output<(typeof NATIVE_INPUT)[N]>;

/** Bytes before a part and after it, by which a character at its edge is recognised. */
const EDGE = 3;
const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** Returns the bytes of a range that begins and ends between characters, and where they begin. */
const wholeCharacters = (
  bytes: Uint8Array,
  from: number,
  to: number,
): { readonly from: number; readonly to: number } => {
  let [start, end] = [from, to];
  while (start < to && start - from < EDGE && isContinuation(bytes[start])) start++;
  while (end < bytes.length && end > start && to - end < EDGE && isContinuation(bytes[end])) end--;
  return { from: start, to: end };
};

/** Native tools that read the results of earlier calls of the session, to the last byte. */
export class ResultTools {
  constructor(private readonly deps: ResultToolsDeps) {}

  async read(call: NativeCall, input: Input<'read_result'>): Promise<string> {
    const found = await this.find(call, input.result);
    return input.from_line === undefined
      ? this.readBytes(call, found, input.from_byte, input.bytes)
      : this.readLines(call, found, input.from_line, input.lines);
  }

  /** Searches the bytes in a thread. A match may lie anywhere, also within one long line. */
  async search(
    call: NativeCall,
    { result, text, from_byte: from, limit }: Input<'search_result'>,
  ): Promise<string> {
    const found = await this.find(call, result);
    const bytes = new Uint8Array(await this.bytesOf(call, found));
    const work = {
      ...({ name: 'searchResult', input: { bytes, text, from, limit } } as const),
      ...{ owner: call.workspace, deadlineMs: TEXT_DEADLINE_MS, transfer: [bytes.buffer as ArrayBuffer] },
    };
    const { matches, next } = await toolJobs.run(work);
    const header = { bytes: found.size, from, matches: matches.length, ...(next === null ? {} : { next }) };
    return resultOf(
      header,
      matches.map(({ at, line, text: around }) => `byte ${at}, line ${line}: ${around}`).join('\n'),
    );
  }

  private async readBytes(
    call: NativeCall,
    found: FoundResult,
    from: number,
    count: number,
  ): Promise<string> {
    const start = Math.max(0, from - EDGE);
    const length = count + (from - start) + EDGE;
    const part = found.stored
      ? await this.deps.blobs.readPart(call.workspace, found.stored.digest, start, length)
      : (found.content ?? new Uint8Array(0)).subarray(start, start + length);
    const first = from - start;
    const shown = wholeCharacters(part, first, Math.min(part.length, first + count));
    const to = start + shown.to;
    const header = {
      bytes: found.size,
      from: start + shown.from,
      to,
      ...(to < found.size ? { next: to } : {}),
    };
    return resultOf(header, new TextDecoder().decode(part.subarray(shown.from, shown.to)));
  }

  private async readLines(
    call: NativeCall,
    found: FoundResult,
    from: number,
    count: number,
  ): Promise<string> {
    const bytes = new Uint8Array(await this.bytesOf(call, found));
    const work = {
      ...({ name: 'numberResultLines', input: { bytes, from, count } } as const),
      ...{ owner: call.workspace, deadlineMs: TEXT_DEADLINE_MS, transfer: [bytes.buffer as ArrayBuffer] },
    };
    const { text, shown, isClipped, total } = await toolJobs.run(work);
    const header = {
      bytes: found.size,
      lines: total,
      from,
      returned: shown,
      ...(isClipped ? { clipped: true } : {}),
    };
    return resultOf(header, text);
  }

  private async find(call: NativeCall, result: string): Promise<FoundResult> {
    const found = await findResult(this.deps.pool, call.workspace, call.sessionId, result);
    if (found) return found;
    throw causedError(notFound, 'TOOL.NO_RESULT', { kind: 'tool_result_unknown', result });
  }

  private bytesOf({ workspace }: NativeCall, { stored, content }: FoundResult): Promise<Uint8Array> {
    return stored
      ? this.deps.blobs.read(workspace, stored.digest)
      : Promise.resolve(content ?? new Uint8Array(0));
  }
}
