import type { FileTreeEvent } from '@antiphon/contracts/agent';
import { type CheckRun, type EventPlace, type Finding, type Parsed, violation } from './audit-check.js';
import type { FileCheck } from './audit-check.js';

type EventOf<T extends FileTreeEvent['type']> = Extract<FileTreeEvent, { type: T }>;
interface Content {
  readonly digest: string;
  readonly size: number;
  readonly mode: number;
}

/** Characters that no path of a tree has. The audit judges by its own list. */
const UNSAFE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\\<>:"|?*]/u;

const isSafePath = (path: string): boolean =>
  path === path.normalize('NFC') &&
  !path.startsWith('~') &&
  !UNSAFE.test(path) &&
  path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');

const nameOf = (path: string): string => path.normalize('NFKC').toUpperCase().toLowerCase();

/** The files of one tree. Shares no code with the service's own fold. */
class TreeRun implements CheckRun<Parsed<FileTreeEvent>> {
  private readonly files = new Map<string, Content>();
  private readonly names = new Map<string, string>();
  private readonly sizes = new Map<string, number>();
  /** Paths of a fork whose content is known: the others are in the tree of its base. */
  private readonly known = new Set<string>();
  private isFork = false;
  private changes = 0;

  see({ place: at, content }: Parsed<FileTreeEvent>): Finding[] {
    this.changes++;
    switch (content.type) {
      case 'FileTreeForked':
        return this.fork(at);
      case 'FileMoved':
        return this.move(content, at);
      case 'FileDeleted':
        return [...this.checkPath(content.data.path, at), ...this.take(content.data, content.type, at)];
      case 'FileWritten':
      case 'FileRestored':
      case 'FileChangedOutside':
        return this.change(content, at);
    }
  }

  end(): Finding[] {
    return [];
  }

  count(): number {
    return this.changes;
  }

  private fork(at: EventPlace): Finding[] {
    this.isFork = true;
    return at.streamVersion === 1 ? [] : [violation(at, 'the tree was forked after its first event')];
  }

  private change(
    event: EventOf<'FileWritten' | 'FileRestored' | 'FileChangedOutside'>,
    at: EventPlace,
  ): Finding[] {
    const { path, before, digest, size, mode } = event.data;
    const present = this.isUnknown(path) ? before : (this.files.get(path)?.digest ?? null);
    const findings = this.checkPath(path, at);
    if (before !== present)
      findings.push(
        violation(at, `${event.type} of ${path} replaces ${short(before)}, which was ${short(present)}`),
      );
    if (event.type === 'FileRestored' && !this.isFork && !this.sizes.has(event.data.digest))
      findings.push(violation(at, `${path} was restored to bytes that the tree never had`));
    this.drop(path);
    if (digest !== null) findings.push(...this.put(path, { digest, size, mode }, at));
    return findings;
  }

  private move({ data }: EventOf<'FileMoved'>, at: EventPlace): Finding[] {
    const { path, to, digest, size, mode } = data;
    const findings = [...this.checkPath(path, at), ...this.checkPath(to, at)];
    findings.push(...this.take(data, 'FileMoved', at));
    if (this.files.has(to)) findings.push(violation(at, `${path} was moved over ${to}`));
    return [...findings, ...this.put(to, { digest, size, mode }, at)];
  }

  /** Removes a file that must have the content which the event names. */
  private take({ path, digest }: { path: string; digest: string }, type: string, at: EventPlace): Finding[] {
    const present = this.isUnknown(path) ? digest : this.files.get(path)?.digest;
    this.drop(path);
    if (present === undefined) return [violation(at, `${type} of ${path}, which was not there`)];
    return present === digest
      ? []
      : [violation(at, `${type} of ${path} names ${short(digest)}, which was ${short(present)}`)];
  }

  private put(path: string, content: Content, at: EventPlace): Finding[] {
    const findings: Finding[] = [];
    const size = this.sizes.get(content.digest);
    if (size !== undefined && size !== content.size)
      findings.push(violation(at, `${path} has ${content.size} bytes under a digest of ${size} bytes`));
    this.sizes.set(content.digest, content.size);
    const other = this.names.get(nameOf(path));
    if (other !== undefined && other !== path) findings.push(violation(at, `${path} clashes with ${other}`));
    const folder = foldersOf(path).find((name) => this.files.has(name));
    if (folder !== undefined) findings.push(violation(at, `${path} is below ${folder}, which is a file`));
    this.known.add(path);
    this.files.set(path, content);
    this.names.set(nameOf(path), path);
    return findings;
  }

  private drop(path: string): void {
    this.known.add(path);
    if (this.files.delete(path)) this.names.delete(nameOf(path));
  }

  private isUnknown(path: string): boolean {
    return this.isFork && !this.known.has(path);
  }

  private checkPath(path: string, at: EventPlace): Finding[] {
    return isSafePath(path) ? [] : [violation(at, `${JSON.stringify(path)} is no path of a tree`)];
  }
}

const short = (digest: string | null): string => (digest === null ? 'no file' : digest.slice(0, 12));

const foldersOf = (path: string): string[] => {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'));
};

/** Checks each `file-tree-` stream. */
export const fileTreesFoldInOrder: FileCheck = {
  name: 'file-trees-fold-in-order',
  about:
    'each change of a file begins with the bytes that the change before it left, and no path is there twice',
  counts: 'changes of files',
  start: () => new TreeRun(),
};
