/** A message of the gateway, parsed. */
export interface Incoming {
  readonly type?: string;
  readonly id?: unknown;
  readonly event?: string;
  readonly data?: unknown;
  readonly offset?: number;
  readonly result?: unknown;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data?: Record<string, unknown>;
  };
}

export interface StreamedFrame {
  readonly event: string;
  readonly data: unknown;
  readonly offset: number;
}

/**
 * Returns the frames that count in the end: a `restart` voids the frames from its `data.offset` up
 * to itself.
 */
export const effectiveFrames = <F extends StreamedFrame>(frames: readonly F[]): F[] => {
  const voided = frames
    .filter(({ event }) => event === 'restart')
    .map(({ data, offset }) => ({ from: (data as { offset: number }).offset, to: offset }));
  return frames.filter(({ offset }) => !voided.some(({ from, to }) => offset >= from && offset < to));
};

/**
 * Renders the effective frames of a session, one line each. Two readers of one session get equal
 * text, however often each was disconnected.
 */
export const assembleFrames = (frames: readonly StreamedFrame[]): string =>
  effectiveFrames(frames)
    .map(({ event, data, offset }) => `${offset} ${event} ${JSON.stringify(data)}\n`)
    .join('');

/** Returns the text that a client shows in the end. */
export const textOf = (frames: readonly StreamedFrame[]): string =>
  effectiveFrames(frames)
    .filter(({ event }) => event === 'text')
    .map(({ data }) => data)
    .join('');
