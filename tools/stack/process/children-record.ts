import { readJson, writeJsonAtomic } from '@antiphon/bootstrap/files';
import type { HomeLayout } from '@antiphon/bootstrap/project';
import type { RecordedChild } from '@antiphon/bootstrap/types';

export interface ChildRecord extends RecordedChild {
  /** Place in the order of starting; stopping goes backwards. */
  readonly rank: number;
  /** Owner of its leases, for a service. */
  readonly serviceId?: string;
}

/** What a supervisor writes down about its children, for whoever comes after its kill -9. */
export interface ChildrenRecord {
  add(child: ChildRecord): void;
  remove(pid: number): void;
}

/** What the previous supervisor of this home wrote, whether it lives or not. */
export const readChildren = (paths: HomeLayout): readonly ChildRecord[] =>
  (readJson(paths.childrenFile) as ChildRecord[] | null) ?? [];

/** `isOurs` tells whether the home is still ours to write to. */
export const createChildrenRecord = (paths: HomeLayout, isOurs: () => boolean): ChildrenRecord => {
  let children: readonly ChildRecord[] = [];
  const write = (next: readonly ChildRecord[]): void => {
    children = [...next].sort((a, b) => a.rank - b.rank);
    // Not flushed: it has to survive a kill, and a power cut ends the children as well.
    if (isOurs()) writeJsonAtomic(paths.childrenFile, children, 0o600, { flush: false });
  };
  return {
    add: (child) => write([...children, child]),
    remove: (pid) => write(children.filter((child) => child.pid !== pid)),
  };
};
