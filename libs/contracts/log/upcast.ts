/** The content of a stored event, in whatever form it was written. */
export interface StoredForm {
  readonly type: string;
  readonly schemaVersion: number;
  readonly data: object;
}

type Data = Readonly<Record<string, unknown>>;

/** One step: the data of `type` as form `from` had it, made into the data of form `from + 1`. Pure; it never throws. */
export interface Upcaster {
  readonly type: string;
  readonly from: number;
  readonly up: (data: Data) => Data;
}

/** The same event with its content in the newest form that there are steps to; what needs none is answered as it is. */
export type Upcast = <E extends StoredForm>(event: E) => E;

type Steps = ReadonlyMap<string, ReadonlyMap<number, Upcaster['up']>>;

const stepsOf = (upcasters: readonly Upcaster[]): Steps => {
  const steps = new Map<string, Map<number, Upcaster['up']>>();
  for (const { type, from, up } of upcasters) {
    const ofType = steps.get(type) ?? new Map<number, Upcaster['up']>();
    if (ofType.has(from)) throw new Error(`two upcasters take ${type} on from form ${from}`);
    steps.set(type, ofType.set(from, up));
  }
  return steps;
};

/**
 * Takes stored content on, step by step. For content only: what is hashed is the form that was written, so a chain is
 * checked on the event as it was read. Throws for two steps that begin at the same form.
 */
export const createUpcast = (upcasters: readonly Upcaster[]): Upcast => {
  const steps = stepsOf(upcasters);
  return (event) => {
    const ofType = steps.get(event.type);
    let step = ofType?.get(event.schemaVersion);
    if (step === undefined) return event;
    let { schemaVersion } = event;
    let data = event.data as Data;
    for (; step !== undefined; step = ofType?.get(++schemaVersion)) data = step(data);
    return { ...event, schemaVersion, data };
  };
};
