import type { RpcRequest } from '@antiphon/contracts/gateway';
import type { StreamFrame } from './client-connection.js';

/** A frame as a client gets it (contract §3): JSON, with the id of the request that it answers. */
export type FrameText = (id: RpcRequest['id'], frame: StreamFrame, offset: number) => string;

/**
 * Keeps the JSON of the last frame's data: a feed tells its readers of a frame one after the other, so all but the first
 * find it here. Only that one, and not all in a WeakMap: most sessions have one reader, which would pay for the map.
 */
export const createFrameText = (): FrameText => {
  let last: unknown = null;
  let data = '';
  return (id, frame, offset) => {
    if (frame !== last) data = JSON.stringify(frame.data);
    last = frame;
    return `{"id":${JSON.stringify(id ?? null)},"event":"${frame.event}","data":${data},"offset":${offset}}`;
  };
};
