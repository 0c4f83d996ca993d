/** Content of a stored event, in the schema version in which it was written. */
export interface StoredForm {
  readonly type: string;
  readonly schemaVersion: number;
  readonly data: object;
}

type Data = Readonly<Record<string, unknown>>;

/**
 * One step: turns the data of `type` from schema version `from` into version `from + 1`. Pure; it
 * never throws.
 */
export interface Upcaster {
  readonly type: string;
  readonly from: number;
  readonly up: (data: Data) => Data;
}

/**
 * Returns the event with its content in the newest schema version. Content that is current is
 * returned unchanged.
 */
export type Upcast = <E extends StoredForm>(event: E) => E;

type Steps = ReadonlyMap<string, ReadonlyMap<number, Upcaster['up']>>;

const stepsOf = (upcasters: readonly Upcaster[]): Steps => {
  const steps = new Map<string, Map<number, Upcaster['up']>>();
  for (const { type, from, up } of upcasters) {
    const stepsOfType = steps.get(type) ?? new Map<number, Upcaster['up']>();
    if (stepsOfType.has(from)) throw new Error(`two upcasters convert ${type} from schema version ${from}`);
    steps.set(type, stepsOfType.set(from, up));
  }
  return steps;
};

/**
 * Creates the function that upcasts stored content, step by step. The hash chain covers the content
 * as it was written, so verify a chain before upcasting. Throws if two steps begin at the same
 * version.
 */
export const createUpcast = (upcasters: readonly Upcaster[]): Upcast => {
  const steps = stepsOf(upcasters);
  return (event) => {
    const stepsOfType = steps.get(event.type);
    let step = stepsOfType?.get(event.schemaVersion);
    if (step === undefined) return event;
    let { schemaVersion } = event;
    let data = event.data as Data;
    for (; step !== undefined; step = stepsOfType?.get(++schemaVersion)) data = step(data);
    return { ...event, schemaVersion, data };
  };
};
