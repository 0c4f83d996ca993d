import { join } from 'node:path';
import type { AgentConfig } from '@antiphon/config';
import { IDENTITY_FILES } from '@antiphon/memory-domain';
import type { IdentityFile } from '@antiphon/memory-domain';
import type { DocumentPlace } from './read-document.js';

export type IdentifiedAgent = Pick<AgentConfig, 'id' | 'name' | 'soulPath' | 'identityDir'>;

/** A document that an agent's configuration asks for. */
export interface IdentitySource extends DocumentPlace {
  readonly file: IdentityFile;
}

/** `soul_path` is the soul where it is given, whatever the folder has; it was named, so a link of it may lead anywhere. */
export const sourcesOf = ({ soulPath, identityDir }: IdentifiedAgent): IdentitySource[] =>
  IDENTITY_FILES.flatMap((file): IdentitySource[] => {
    if (file === 'SOUL.md' && soulPath !== null) return [{ file, path: soulPath, within: null }];
    return identityDir === null ? [] : [{ file, path: join(identityDir, file), within: identityDir }];
  });
