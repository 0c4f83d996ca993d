import { writeFileSync } from 'node:fs';

const failedTests = (file) => file.numFailingTests + (file.testExecError == null ? 0 : 1);

/**
 * Jest reporter that writes the totals and the spec files that failed to a file, so that the totals
 * can be printed last.
 */
export default class CountReporter {
  onRunComplete(_contexts, results) {
    const failed = results.testResults.filter((file) => failedTests(file) > 0);
    writeFileSync(
      process.env.ANTIPHON_TEST_COUNT_FILE ?? '',
      JSON.stringify({
        passed: results.numPassedTests,
        failed: results.numFailedTests + results.numRuntimeErrorTestSuites,
        skipped: results.numPendingTests + results.numTodoTests,
        files: failed.map((file) => ({
          path: file.testFilePath,
          failed: failedTests(file),
          passed: file.numPassingTests,
        })),
      }),
    );
  }
}
