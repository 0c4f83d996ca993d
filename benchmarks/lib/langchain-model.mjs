import { ChatOpenAICompletions } from '@langchain/openai';

/**
 * After a streamed answer the stock class estimates tokens with a table that it downloads, which
 * hangs without a network. An estimate that costs nothing is in the peer's favour.
 */
class Chat extends ChatOpenAICompletions {
  getNumTokens(content) {
    return Promise.resolve(Math.ceil(String(content).length / 4));
  }
  _getEstimatedTokenCountFromPrompt() {
    return Promise.resolve(100);
  }
  _getNumTokensFromGenerations() {
    return Promise.resolve(20);
  }
}

/** Returns LangChain's client of the mock provider, as its documentation sets it up. */
export const createLangChainModel = (providerUrl) =>
  new Chat({
    ...{ model: 'mock', apiKey: 'none', streaming: true, maxRetries: 0 },
    configuration: { baseURL: `${providerUrl}/v1` },
  });
