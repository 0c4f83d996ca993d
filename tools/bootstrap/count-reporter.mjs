import { writeFileSync } from 'node:fs';

/** Jest reporter that writes the totals to a file, so that they can be printed last. */
export default class CountReporter {
  onRunComplete(_contexts, results) {
    writeFileSync(
      process.env.ANTIPHON_TEST_COUNT_FILE ?? '',
      JSON.stringify({
        passed: results.numPassedTests,
        failed: results.numFailedTests + results.numRuntimeErrorTestSuites,
        skipped: results.numPendingTests + results.numTodoTests,
      }),
    );
  }
}
