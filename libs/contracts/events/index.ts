import type { z } from 'zod';
import { RunEvent, SessionEvent, SessionKeyBound, WorkflowEvent } from '../agent/index.js';
import { createUpcast } from '../log/upcast.js';
import type { Upcaster } from '../log/upcast.js';
import { BudgetEvent } from '../metering/index.js';

export { REST_RULES } from './at-rest.js';
export type { BeginsAndEnds, RestRule } from './at-rest.js';

/** An event type in the form that is written now. */
export interface EventContract {
  readonly category: string;
  readonly type: string;
  readonly schemaVersion: number;
  /** Of `{type, schemaVersion, data}`. */
  readonly schema: z.ZodType;
  /** Top-level names of its data. */
  readonly fields: readonly string[];
}

type EventSchema = typeof SessionKeyBound | (typeof SessionEvent.options)[number] | OtherSchema;
type OtherSchema = (typeof RunEvent | typeof WorkflowEvent | typeof BudgetEvent)['options'][number];

const contractsOf = (category: string, schemas: readonly EventSchema[]): EventContract[] =>
  schemas.map((schema) => ({
    category,
    type: schema.shape.type.value,
    schemaVersion: schema.shape.schemaVersion.value,
    schema,
    fields: Object.keys(schema.shape.data.shape),
  }));

/** Every event type that this version writes. Each has a golden payload in `golden/`, and so has each older form. */
export const EVENT_CONTRACTS: readonly EventContract[] = [
  ...contractsOf('session', [...SessionEvent.options, SessionKeyBound]),
  ...contractsOf('run', RunEvent.options),
  ...contractsOf('workflow', WorkflowEvent.options),
  ...contractsOf('budget', BudgetEvent.options),
];

/**
 * What takes older forms on to the one that is written now. To change an event type so that old content does not fit
 * any more: raise its `schemaVersion`, add the step here, keep the old golden payload and add one of the new form.
 */
export const UPCASTERS: readonly Upcaster[] = [];

/** Takes stored content on to the form that this version knows. Every reader of content goes through it. */
export const upcast = createUpcast(UPCASTERS);

const VERSIONS = new Map(EVENT_CONTRACTS.map(({ type, schemaVersion }) => [type, schemaVersion]));

/** The form of an event type that is written now; undefined for a type that this version does not know. */
export const currentFormOf = (type: string): number | undefined => VERSIONS.get(type);
