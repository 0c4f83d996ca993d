import { createUpcast } from '../log/upcast.js';
import type { StoredForm, Upcaster } from '../log/upcast.js';
import type { EventContract } from './index.js';

export interface GoldenPayload extends StoredForm {
  /** Where it is kept, below `golden/`. */
  readonly file: string;
}

const nameOf = (contract: EventContract, form: number): string =>
  `${contract.category}/${contract.type}.v${form}.json`;

const parsedAlike = (contract: EventContract, { type, schemaVersion, data }: StoredForm): string | null => {
  const result = contract.schema.safeParse({ type, schemaVersion, data });
  if (!result.success)
    return result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ');
  const kept = (result.data as StoredForm).data;
  const lost = Object.keys(data).filter((name) => !(name in kept));
  return lost.length > 0 ? `its contract does not know ${lost.join(', ')} any more` : null;
};

const missingOf = (contract: EventContract, golden: readonly GoldenPayload[]): string[] => {
  const own = golden.filter(({ type }) => type === contract.type);
  const forms = Array.from({ length: contract.schemaVersion }, (_, index) => index + 1);
  const missing = forms
    .filter((form) => !own.some(({ schemaVersion }) => schemaVersion === form))
    .map((form) => `there is no ${nameOf(contract, form)}`);
  const newest = own.filter(({ schemaVersion }) => schemaVersion === contract.schemaVersion);
  const shown = new Set(newest.flatMap(({ data }) => Object.keys(data)));
  const hidden = newest.length > 0 ? contract.fields.filter((field) => !shown.has(field)) : [];
  const unseen = hidden.map((field) => `no golden payload of ${contract.type} shows its field ${field}`);
  return [...missing, ...unseen];
};

/**
 * What is wrong with the golden payloads, a sentence each: a type or form without one, a field that none shows, content
 * that this version cannot read any more, or reads without a part of it.
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
    const why = parsedAlike(contract, upcast(payload));
    return why === null ? [] : [`${payload.file} cannot be read any more: ${why}`];
  });
  return [...contracts.flatMap((contract) => missingOf(contract, golden)), ...unread];
};
