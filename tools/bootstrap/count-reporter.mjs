import { writeFileSync } from 'node:fs';

/** A Jest reporter that only counts, so that the sum can be printed after everything else that Jest has to say. */
export default class CountReporter {
  onRunComplete(_contexts, results) {
    writeFileSync(
      process.env.ANTIPHON_TEST_COUNT_FILE,
      JSON.stringify({
        passed: results.numPassedTests,
        failed: results.numFailedTests + results.numRuntimeErrorTestSuites,
        skipped: results.numPendingTests + results.numTodoTests,
      }),
    );
  }
}
