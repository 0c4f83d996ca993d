import type { ResolvedEngine } from '@antiphon/bootstrap/types';
import { checkExternalTemporal } from '../engines/external-engines.js';
import { temporalEngine } from '../engines/temporal.js';
import { superviseProcess } from '../process/supervised-process.js';
import { externalEntry, managedEntry } from './mounted-engine.js';
import type { EngineSource, MountedEngine, MountOptions } from './mounted-engine.js';

export interface MountedTemporal extends MountedEngine {
  /** `host:port` of its gRPC. */
  address(): string;
  /** Null for a server that somebody else runs. */
  uiUrl(): string | null;
}

const mountOurs = ({ context, hooks, progress }: MountOptions, program: ResolvedEngine): MountedTemporal => {
  const engine = temporalEngine(context, program);
  const process = superviseProcess(engine.spec, hooks);
  return {
    process,
    address: engine.address,
    uiUrl: () => (process.status().port === null ? null : engine.uiUrl()),
    entry: () => managedEntry(process, engine.version, ''),
    start: () => progress.step('Temporal: starting it', () => process.start()),
  };
};

/** Temporal with namespace `antiphon` and its search attributes. */
export const mountTemporal = (options: MountOptions, source: EngineSource): MountedTemporal => {
  if (source.program !== undefined) return mountOurs(options, source.program);
  const { external } = source;
  return {
    process: null,
    address: () => external,
    uiUrl: () => null,
    entry: () => externalEntry(external),
    start: () => checkExternalTemporal(external),
  };
};
