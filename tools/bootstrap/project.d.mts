export declare const projectRoot: string;
export declare const cacheFolder: (env?: NodeJS.ProcessEnv) => string;
export declare const homeFolder: (env?: NodeJS.ProcessEnv, cwd?: string) => string;
export declare const bundledNode: (root?: string) => string;
