import { expect } from '@jest/globals';
import { fold, isAppError } from '@antiphon/kernel';
import type { Decider } from '@antiphon/kernel';

/**
 * Returns given/when/then for a decider: `given(events).when(command).then(events)`, or
 * `.thenRejects(code)`. Folds the past events, decides the command, and compares the new events by
 * value.
 */
export const specFor =
  <State, Command, Event>({ initialState, decide, evolve }: Decider<State, Command, Event>) =>
  (history: readonly Event[]) => ({
    when: (command: Command) => {
      const attempt = (): Event[] => decide(command, fold(evolve, initialState(), history));
      return {
        then: (expected: readonly Event[]): void => expect(attempt()).toEqual(expected),
        thenNothing: (): void => expect(attempt()).toEqual([]),
        thenRejects: (code: string): void => {
          let thrown: unknown;
          try {
            attempt();
          } catch (error) {
            thrown = error;
          }
          expect(isAppError(thrown) ? thrown.code : thrown).toBe(code);
        },
      };
    },
  });
