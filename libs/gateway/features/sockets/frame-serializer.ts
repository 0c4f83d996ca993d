import type { FrameEvent } from '@antiphon/contracts/agent';
import type { RpcRequest } from '@antiphon/contracts/gateway';

/**
 * A frame to send. A frame without an offset (`accepted` of a queued turn) gets the session's last
 * one.
 */
export interface StreamFrame {
  readonly event: FrameEvent;
  readonly data: unknown;
  readonly offset: number | null;
}

/**
 * Serialises frames for all connections of a process. It caches the JSON of the last frame's data.
 * A feed delivers a frame to its readers one after another, and all but the first use the cache. A
 * WeakMap of all frames would cost every session with one reader, which is most of them.
 */
export class FrameSerializer {
  #last: unknown = null;
  #data = '';

  /** Returns the JSON of a frame, with the id of the request that it belongs to. */
  serialize(id: RpcRequest['id'], frame: StreamFrame, offset: number): string {
    if (frame !== this.#last) this.#data = JSON.stringify(frame.data);
    this.#last = frame;
    return `{"id":${JSON.stringify(id ?? null)},"event":"${frame.event}","data":${this.#data},"offset":${offset}}`;
  }
}
