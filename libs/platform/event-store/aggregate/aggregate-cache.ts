import { createBoundedMap, createSerialQueue } from '@antiphon/kernel';
import type { BoundedMap, SerialQueue } from '@antiphon/kernel';

/** State of an event stream after its last event. */
export interface StateAt<State> {
  readonly state: State;
  /** 0 if the event stream does not exist. */
  readonly version: number;
}

/** Stored folds. They are a cache of the log: any of them may be deleted at any time. */
export interface AggregateSnapshots<State> {
  read(workspace: string, id: string): Promise<StateAt<State> | null>;
  write(workspace: string, id: string, folded: StateAt<State>): Promise<void>;
  /** Number of events after which a new snapshot is written. */
  readonly every: number;
}

/** Keeps folds in the process. Changes of one stream run one after another. */
export interface CacheOptions<State> {
  readonly maxStreams: number;
  /** Decides on the kept fold first, and reads the log only after a conflict. */
  readonly decidesOnKept?: boolean;
  /**
   * Maximum random pause after a change while more wait, ms. Another process, which has to read the
   * change first, gets a turn.
   */
  readonly maxPauseMs?: number;
  readonly snapshots?: AggregateSnapshots<State>;
}

/** A kept fold. */
export interface Kept<State> {
  folded: StateAt<State>;
  /** Version at the last snapshot that this process knows. */
  snapshot: number;
  isLoaded: boolean;
  /** Number of changes that wait or run here. */
  waiting: number;
  readonly enqueue: SerialQueue;
}

/** The folds that a process keeps, least recently used first. */
export class AggregateCache<State> {
  private readonly kept: BoundedMap<Kept<State>>;

  constructor(
    readonly options: CacheOptions<State>,
    private readonly initialState: () => State,
  ) {
    this.kept = createBoundedMap(options.maxStreams);
  }

  open(workspace: string, id: string): Kept<State> {
    const key = `${workspace}\n${id}`;
    const found = this.kept.get(key) ?? this.create();
    this.kept.put(key, found);
    return found;
  }

  private create(): Kept<State> {
    const folded = { state: this.initialState(), version: 0 };
    return { folded, snapshot: 0, isLoaded: false, waiting: 0, enqueue: createSerialQueue() };
  }

  /** Brings a fold up to date: from its snapshot at first, then by the events after it. */
  async refresh(
    workspace: string,
    id: string,
    kept: Kept<State>,
    readAfter: (known: StateAt<State>) => Promise<StateAt<State>>,
  ): Promise<StateAt<State>> {
    const { snapshots } = this.options;
    if (!kept.isLoaded) {
      kept.folded = (await snapshots?.read(workspace, id)) ?? kept.folded;
      kept.snapshot = kept.folded.version;
      kept.isLoaded = true;
    }
    kept.folded = await readAfter(kept.folded);
    if (snapshots && kept.folded.version - kept.snapshot >= snapshots.every) {
      await snapshots.write(workspace, id, kept.folded);
      kept.snapshot = kept.folded.version;
    }
    return kept.folded;
  }
}
