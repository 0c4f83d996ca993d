/** What clients have been sent and have not read, over all sockets of a process: bounded for each and together. */
export interface SendBuffers {
  /** Says how much a socket holds; false when that is more than it may: then it is closed, and others go on. */
  mayHold(id: string, bytes: number): boolean;
  /** The socket is gone, and what it held with it. */
  forget(id: string): void;
  /** Bytes held by slow sockets together. */
  total(): number;
}

export interface SendLimits {
  readonly socketBytes: number;
  readonly totalBytes: number;
}

/** A socket that holds less than this is not slow: what is on its way to it fits in here. */
export const BRISK_BYTES = 64 * 1024;

export const SEND_LIMITS: SendLimits = { socketBytes: 4 * 1024 * 1024, totalBytes: 32 * 1024 * 1024 };

/** Where the total is used up, a socket may still hold its share of it: the greediest ones go, not whoever comes last. */
export const createSendBuffers = ({ socketBytes, totalBytes }: SendLimits = SEND_LIMITS): SendBuffers => {
  const slow = new Map<string, number>();
  let total = 0;
  const forget = (id: string): void => {
    total -= slow.get(id) ?? 0;
    slow.delete(id);
  };
  return {
    mayHold: (id, bytes) => {
      forget(id);
      if (bytes <= BRISK_BYTES) return true;
      slow.set(id, bytes);
      total += bytes;
      return bytes <= socketBytes && (total <= totalBytes || bytes <= totalBytes / slow.size);
    },
    forget,
    total: () => total,
  };
};
