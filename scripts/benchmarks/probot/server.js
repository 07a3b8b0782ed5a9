// Probot with a durable write before its answer. Arguments: port, database, secret.
import { createServer } from "node:http";
import { generateKeyPairSync } from "node:crypto";
import Database from "better-sqlite3";
import { Probot, createNodeMiddleware } from "probot";

const [port, path, secret] = process.argv.slice(2);
const database = new Database(path);
database.pragma("journal_mode = WAL");
database.pragma("synchronous = FULL");
database.exec("CREATE TABLE deliveries (id TEXT PRIMARY KEY, event TEXT, at REAL, body BLOB) STRICT");
const keep = database.prepare("INSERT INTO deliveries VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING");

// Probot hands on a parsed payload only. Bytes of the same number spare it the serialising.
const body = Buffer.alloc(12 * 1024, "x");

const { privateKey } = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});
const probot = new Probot({ appId: 1, privateKey, secret, logLevel: "fatal" });
const middleware = await createNodeMiddleware(
  (app) => {
    app.onAny(({ id, name }) => {
      keep.run(id, name, Date.now() / 1000, body);
    });
  },
  { probot, webhooksPath: "/webhooks/github" },
);
createServer(middleware).listen(Number(port), "127.0.0.1", () => console.log("listening"));
