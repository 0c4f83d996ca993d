import { writeFileSync } from 'node:fs';

const failedTests = (file) => file.numFailingTests + (file.testExecError == null ? 0 : 1);

const failedFiles = (results) =>
  results.testResults
    .filter((file) => failedTests(file) > 0)
    .map((file) => ({
      path: file.testFilePath,
      failed: failedTests(file),
      passed: file.numPassingTests,
    }));

const SLOWEST = 10;

/** Returns the spec files that took longest, with their seconds, the slowest first. */
const slowestFiles = (results) =>
  results.testResults
    .map(({ testFilePath, perfStats }) => ({
      path: testFilePath,
      seconds: Math.round(((perfStats?.end ?? 0) - (perfStats?.start ?? 0)) / 100) / 10,
    }))
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, SLOWEST);

/**
 * Returns the totals of a run. A spec file without a result counts as one failure.
 *
 * @param {any} results those of Jest, of all files or of the files before a deadline
 */
export const countResults = (results) => ({
  passed: results.numPassedTests,
  failed:
    results.numFailedTests +
    results.numRuntimeErrorTestSuites +
    Math.max(0, results.numTotalTestSuites - results.testResults.length),
  skipped: results.numPendingTests + results.numTodoTests,
  files: failedFiles(results),
  slowest: slowestFiles(results),
});

const writeCount = (results) =>
  writeFileSync(process.env.ANTIPHON_TEST_COUNT_FILE ?? '', JSON.stringify(countResults(results)));

/**
 * Jest reporter that writes the totals and the spec files that failed to a file, so that the totals
 * can be printed last. At the second `ANTIPHON_TEST_DEADLINE` (Unix time) it ends the run: a run
 * that is stopped from outside would print no totals at all.
 */
export default class CountReporter {
  #running = new Set();
  #results;

  onRunStart(results) {
    this.#results = results;
    const deadline = Number(process.env.ANTIPHON_TEST_DEADLINE ?? 0) * 1_000;
    if (deadline > 0) setTimeout(() => this.#end(), Math.max(0, deadline - Date.now())).unref();
  }

  onTestFileStart(test) {
    this.#running.add(test.path);
  }

  onTestFileResult(test, _result, results) {
    this.#running.delete(test.path);
    this.#results = results;
  }

  onRunComplete(_contexts, results) {
    writeCount(results);
  }

  #end() {
    writeCount(this.#results);
    const missing = this.#results.numTotalTestSuites - this.#results.testResults.length;
    console.error(`the deadline of the run has passed; ${missing} spec files have no result. Running now:`);
    for (const path of this.#running) console.error(`  ${path}`);
    process.exit(1);
  }
}
