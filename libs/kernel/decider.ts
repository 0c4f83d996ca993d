/** Pure decision making: `decide` turns a command and a state into facts, `evolve` folds facts into a state. */
export interface Decider<State, Command, Event> {
  readonly initialState: () => State;
  readonly decide: (command: Command, state: State) => Event[];
  /** Never throws: what is in the log has happened. */
  readonly evolve: (state: State, event: Event) => State;
}

/** Folds events onto a state, oldest first. */
export const fold = <State, Event>(
  evolve: (state: State, event: Event) => State,
  state: State,
  events: Iterable<Event>,
): State => {
  let next = state;
  for (const event of events) next = evolve(next, event);
  return next;
};

/** Makes a switch exhaustive at compile time; at run time it reports a bug. */
export const assertNever = (value: never): never => {
  throw new Error(`unreachable: ${JSON.stringify(value)}`);
};
