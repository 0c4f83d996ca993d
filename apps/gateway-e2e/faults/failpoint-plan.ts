import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '@antiphon/testing';

/** Maximum time until a process reaches an armed failpoint. */
const HIT_MS = 60_000;

/** The file by which failpoints of a running stack are armed (docs/fault-tests.md). */
export class FailpointPlan {
  private readonly folder = mkdtempSync(join(tmpdir(), 'antiphon-failpoints-'));
  private readonly path = join(this.folder, 'plan');
  private readonly hitPath = `${this.path}.hit`;

  /** Value of `FAILPOINTS` for the processes of the stack. */
  readonly variable = `@${this.path}`;

  /** Arms a failpoint: the first process that reaches it for the nth time performs the action. */
  arm(point: string, action: string, nth = 1): void {
    rmSync(this.hitPath, { force: true });
    writeFileSync(`${this.path}.next`, `${point}:${nth}:${action}`);
    renameSync(`${this.path}.next`, this.path);
  }

  /** Disarms the failpoint. Returns whether a process has reached it. */
  disarm(): boolean {
    rmSync(this.path, { force: true });
    return existsSync(this.hitPath);
  }

  /** Waits until a process has reached the failpoint. Returns its id. */
  async waitForHit(): Promise<number> {
    await until(() => existsSync(this.hitPath) && this.readPid() !== null, HIT_MS);
    return this.readPid() ?? 0;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  private readPid(): number | null {
    try {
      return (JSON.parse(readFileSync(this.hitPath, 'utf8')) as { pid: number }).pid;
    } catch {
      return null;
    }
  }
}
