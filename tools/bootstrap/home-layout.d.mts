export interface HomeLayout {
  readonly home: string;
  readonly stackFile: string;
  readonly lockFile: string;
  readonly childrenFile: string;
  readonly portsFile: string;
  readonly postgresFile: string;
  readonly credentials: string;
  readonly adminKeyFile: string;
  readonly databaseUrlFile: string;
  readonly natsUsersFile: string;
  readonly secretsFile: string;
  readonly logs: string;
  readonly run: string;
  readonly postgres: string;
  readonly nats: string;
  readonly temporal: string;
}
export declare const homeLayout: (home: string) => HomeLayout;
export declare const postgresMajorOf: (home: string) => number | null;
