import { createUpcast } from '../../log/upcast.js';
import type { StoredForm, Upcaster } from '../../log/upcast.js';
import type { EventContract } from '../index.js';

export interface GoldenPayload extends StoredForm {
  /** Path below `golden/`. */
  readonly file: string;
}

const nameOf = (contract: EventContract, form: number): string =>
  `${contract.category}/${contract.type}.v${form}.json`;

const compatibilityFault = (
  contract: EventContract,
  { type, schemaVersion, data }: StoredForm,
): string | null => {
  const result = contract.schema.safeParse({ type, schemaVersion, data });
  if (!result.success)
    return result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ');
  const parsed = (result.data as StoredForm).data;
  const lost = Object.keys(data).filter((name) => !(name in parsed));
  return lost.length > 0 ? `its contract does not know ${lost.join(', ')} any more` : null;
};

const coverageFaults = (contract: EventContract, golden: readonly GoldenPayload[]): string[] => {
  const own = golden.filter(({ type }) => type === contract.type);
  const versions = Array.from({ length: contract.schemaVersion }, (_, index) => index + 1);
  const missing = versions
    .filter((form) => !own.some(({ schemaVersion }) => schemaVersion === form))
    .map((form) => `there is no ${nameOf(contract, form)}`);
  const newest = own.filter(({ schemaVersion }) => schemaVersion === contract.schemaVersion);
  const shown = new Set(newest.flatMap(({ data }) => Object.keys(data)));
  const hidden = newest.length > 0 ? contract.fields.filter((field) => !shown.has(field)) : [];
  const unseen = hidden.map((field) => `no golden payload of ${contract.type} shows its field ${field}`);
  return [...missing, ...unseen];
};

/**
 * Returns one sentence for each fault of the golden payloads. A fault is a type or version without
 * a payload, or a field that no payload shows. Content that the current contract rejects or drops
 * in part is a fault as well.
 */
export const faultsOfGolden = (
  contracts: readonly EventContract[],
  upcasters: readonly Upcaster[],
  golden: readonly GoldenPayload[],
): string[] => {
  const upcast = createUpcast(upcasters);
  const unread = golden.flatMap((payload) => {
    const contract = contracts.find(({ type }) => type === payload.type);
    if (!contract) return [`${payload.file}: no contract reads ${payload.type} any more`];
    const why = compatibilityFault(contract, upcast(payload));
    return why === null ? [] : [`${payload.file} cannot be read any more: ${why}`];
  });
  return [...contracts.flatMap((contract) => coverageFaults(contract, golden)), ...unread];
};
