/** Pure decisions: `decide` maps a command and a state to facts, `evolve` applies a fact. */
export interface Decider<State, Command, Event> {
  readonly initialState: () => State;
  readonly decide: (command: Command, state: State) => Event[];
  /** Never throws: an event in the log is a fact. */
  readonly evolve: (state: State, event: Event) => State;
}

/** Applies events to a state, oldest first. */
export const fold = <State, Event>(
  evolve: (state: State, event: Event) => State,
  state: State,
  events: Iterable<Event>,
): State => {
  let next = state;
  for (const event of events) next = evolve(next, event);
  return next;
};

/** Makes a switch exhaustive at compile time, and throws at run time. */
export const assertNever = (value: never): never => {
  throw new Error(`unreachable: ${JSON.stringify(value)}`);
};
