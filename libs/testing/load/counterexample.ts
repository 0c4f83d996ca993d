/** A promise of the product that a run has shown to be broken. */
export class Counterexample extends Error {
  override readonly name = 'Counterexample';
}
