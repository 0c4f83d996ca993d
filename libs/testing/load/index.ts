export { RUN_KEY_INPUT, checkCommands, settledFrames } from './check-commands.js';
export type { LoggedFact, Verdict } from './check-commands.js';
export { Counterexample } from './counterexample.js';
export { carryOutRun } from './keyed-run.js';
export type { RunCommand, TakenRun } from './keyed-run.js';
export { openDoor, sendTurn } from './keyed-turn.js';
export type { Door, TakenTurn, TurnCommand } from './keyed-turn.js';
export { seeded } from './seeded.js';
export type { Chance } from './seeded.js';
