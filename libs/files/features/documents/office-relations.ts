import type { OfficeArchive } from './office-archive.js';
import { walkXml } from './walk-xml.js';

/** Returns the name of each part that a part refers to, by the id of the reference. */
export const readRelations = (parts: OfficeArchive['parts'], part: string): ReadonlyMap<string, string> => {
  const slash = part.lastIndexOf('/') + 1;
  const folder = part.slice(0, slash);
  const targets = new Map<string, string>();
  const bytes = parts.get(`${folder}_rels/${part.slice(slash)}.rels`);
  if (!bytes) return targets;
  walkXml(bytes, {
    open: (name, { Id, Target }) => {
      if (name !== 'Relationship' || Id === undefined || Target === undefined) return;
      targets.set(Id, Target.startsWith('/') ? Target.slice(1) : folder + Target);
    },
  });
  return targets;
};
