import type { Logger } from '@antiphon/observability';

/** Files of a folder that stay different from its tree. Each is logged once. */
export class ReportedDifferences {
  private readonly reported = new Set<string>();

  constructor(
    private readonly logger: Logger,
    private readonly workspace: string,
  ) {}

  /** Takes the paths that differ now. One that differs again later is logged again. */
  set(paths: ReadonlySet<string>): void {
    for (const path of paths) this.add(path);
    for (const path of this.reported) if (!paths.has(path)) this.reported.delete(path);
  }

  add(path: string, error?: unknown): void {
    if (this.reported.has(path)) return;
    this.reported.add(path);
    const { workspace } = this;
    this.logger.warn({ workspace, path, ...(error ? { err: error } : {}) }, 'file differs from its tree');
  }
}
