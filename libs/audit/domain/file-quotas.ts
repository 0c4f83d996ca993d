import type { FileQuotas, FileTreeEvent } from '@antiphon/contracts/agent';
import { type CheckRun, type EventPlace, type Finding, type Parsed, violation } from './audit-check.js';
import type { FileCheck } from './audit-check.js';

type Used = Readonly<Record<'maxFiles' | 'maxBytes' | 'maxVersions', number>>;
const QUOTAS = ['maxFiles', 'maxBytes', 'maxVersions'] as const;

/** Events of one append have the same time and cause: a quota holds after all of them. */
const appendOf = ({ data: { at, cause } }: FileTreeEvent): string => JSON.stringify([at, cause]);

/** Files, bytes and versions of one tree, compared with the quotas that its changes name. */
class QuotaRun implements CheckRun<Parsed<FileTreeEvent>> {
  private readonly paths = new Set<string>();
  private bytes = 0;
  private versions = 0;
  /** A fork has files of its base, which this event stream does not name. */
  private isFork = false;
  private quotas: FileQuotas | undefined;
  private last: { readonly append: string; readonly at: EventPlace } | undefined;
  private before: Used = this.used();
  private checked = 0;

  see({ place: at, content }: Parsed<FileTreeEvent>): Finding[] {
    const append = appendOf(content);
    const findings = this.last && this.last.append !== append ? this.endAppend() : [];
    this.last = { append, at };
    if ('quotas' in content.data) this.quotas = content.data.quotas ?? this.quotas;
    this.apply(content);
    return [...findings, ...this.checkSize(content, at)];
  }

  end(): Finding[] {
    return this.endAppend();
  }

  count(): number {
    return this.checked;
  }

  private used(): Used {
    return { maxFiles: this.paths.size, maxBytes: this.bytes, maxVersions: this.versions };
  }

  private endAppend(): Finding[] {
    const { last, quotas, before } = this;
    const used = this.used();
    this.before = used;
    if (!last || !quotas) return [];
    this.checked++;
    if (this.isFork) return [];
    // A quota that was lowered refuses growth, and nothing else.
    return QUOTAS.filter((name) => used[name] > quotas[name] && used[name] > before[name]).map((name) =>
      violation(last.at, `the tree has ${used[name]} of ${name} = ${quotas[name]}`),
    );
  }

  private checkSize({ type, data }: FileTreeEvent, at: EventPlace): Finding[] {
    const most = this.quotas?.maxFileBytes;
    if (type !== 'FileWritten' || most === undefined || data.size <= most) return [];
    return [violation(at, `${data.path} has ${data.size} bytes; a file has at most ${most}`)];
  }

  private apply({ type, data }: FileTreeEvent): void {
    this.versions++;
    switch (type) {
      case 'FileTreeForked':
        this.isFork = true;
        return;
      case 'FileDeleted':
        this.paths.delete(data.path);
        return;
      case 'FileMoved':
        this.paths.delete(data.path);
        this.paths.add(data.to);
        return;
      case 'FileChangedOutside':
        this.bytes += data.size;
        if (data.digest === null) this.paths.delete(data.path);
        else this.paths.add(data.path);
        return;
      case 'FileWritten':
        this.bytes += data.size;
        this.paths.add(data.path);
        return;
      case 'FileRestored':
        this.paths.add(data.path);
    }
  }
}

/** Checks each `file-tree-` stream against the quotas that its changes record. */
export const fileTreesStayWithinQuotas: FileCheck = {
  name: 'file-trees-stay-within-quotas',
  about: 'no change makes a tree grow over the quotas of its workspace, which the first change names',
  counts: 'changes under a quota',
  start: () => new QuotaRun(),
};
