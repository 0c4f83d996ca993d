// Runs one subject in this process and answers calls from the benchmark that forked it.
const subject = await import(`../subjects/${process.argv[2]}.mjs`);
let opened = {};

const methods = {
  open: async (options) => {
    opened = await subject.open(options);
  },
  close: async () => opened.close?.(),
};

process.on('message', async ({ id, method, params }) => {
  try {
    process.send({ id, result: await (methods[method] ?? opened[method])(params) });
  } catch (error) {
    process.send({ id, error: error?.stack ?? String(error) });
  }
});
process.once('disconnect', () => process.exit(0));
