import type { NATIVE_INPUT, NativeCall } from '@antiphon/conversation-features';
import type { BlobStore } from '@antiphon/database';
import type { z } from 'zod';
import type { FindTools } from './find-tools.js';
import type { ResultTools } from './result-tools.js';
import { storeLarge } from './store-large.js';

type Input<N extends keyof typeof NATIVE_INPUT> = z.output<(typeof NATIVE_INPUT)[N]>;

export interface ToolReadsDeps {
  readonly finding: Pick<FindTools, 'find'>;
  readonly results: Pick<ResultTools, 'read' | 'search'>;
  readonly blobs: Pick<BlobStore, 'put'>;
}

/** Native tools about the tools of an agent and about their results. */
export class ToolReads {
  readonly runs = {
    find_tools: (call: NativeCall, input: Input<'find_tools'>) => this.deps.finding.find(call, input),
    read_result: (call: NativeCall, input: Input<'read_result'>) => this.deps.results.read(call, input),
    search_result: (call: NativeCall, input: Input<'search_result'>) => this.deps.results.search(call, input),
  };

  constructor(private readonly deps: ToolReadsDeps) {}

  /** Stores a result that is too large for the event of its call. Returns null for any other. */
  storeLarge(workspace: string, callId: string, result: string): ReturnType<typeof storeLarge> {
    return storeLarge(this.deps.blobs, workspace, callId, result);
  }
}
