/** Point of another session at which a fork began. */
export interface ForkPoint {
  readonly sessionId: string;
  readonly version: number;
  readonly hash: string;
  readonly purpose: 'fork' | 'whatif';
  /** Only for a what-if: each turn with the turn of the origin that it repeats. */
  readonly remakes: readonly { readonly turnId: string; readonly of: string }[];
}

type Data = Readonly<Record<string, unknown>>;

/** Reads the point of a fork from the data of its `SessionForked`. */
export const forkPointOf = (data: Data): ForkPoint => {
  const { sessionId, version, hash } = (data['origin'] ?? {}) as Data;
  return {
    sessionId: typeof sessionId === 'string' ? sessionId : '',
    version: typeof version === 'number' ? version : 0,
    hash: typeof hash === 'string' ? hash : '',
    purpose: data['purpose'] === 'whatif' ? 'whatif' : 'fork',
    remakes: (data['remakes'] ?? []) as ForkPoint['remakes'],
  };
};
