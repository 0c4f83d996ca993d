import { installLlama } from './llama-cpp.mjs';

/* Installs llama.cpp and its model. Prints the reason and exits 1 where that is not possible. */
await installLlama().catch(({ message }) => {
  console.error(message);
  process.exitCode = 1;
});
