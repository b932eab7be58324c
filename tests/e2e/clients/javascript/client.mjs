// The official client for JavaScript: conflict, apply, and an informer that goes on after its connection broke.
// It tells what it sees in lines of JSON, of which the test makes up its mind. It ends when it has seen an object called `last`.

import { setTimeout } from "node:timers/promises";

import { CustomObjectsApi, KubeConfig, PatchStrategy, Watch, ListWatch, setHeaderOptions } from "@kubernetes/client-node";

const API_VERSION = "worker.saved.sh/v1alpha1";
const RETRY_MILLISECONDS = 200;
const namespace = process.argv[2];
const place = { group: "worker.saved.sh", version: "v1alpha1", namespace, plural: "localworkers" };

const config = new KubeConfig();
config.loadFromDefault();
const api = config.makeApiClient(CustomObjectsApi);

const tell = (step, fields) => console.log(JSON.stringify({ step, ...fields }));
const worker = (name, image) => ({ apiVersion: API_VERSION, kind: "LocalWorker", metadata: { name }, spec: { image } });
const replace = (body) => api.replaceNamespacedCustomObject({ ...place, name: body.metadata.name, body });
const read = (name) => api.getNamespacedCustomObject({ ...place, name });

function apply(body, fieldManager, force) {
  const asApply = setHeaderOptions("Content-Type", PatchStrategy.ServerSideApply);
  return api.patchNamespacedCustomObject({ ...place, name: body.metadata.name, body, fieldManager, force }, asApply);
}

async function refused(step, request) {
  try {
    await request;
  } catch (error) {
    const status = typeof error.body === "string" ? JSON.parse(error.body) : error.body;
    tell(step, { code: error.code, reason: status.reason });
  }
}

async function write() {
  const stale = await api.createNamespacedCustomObject({ ...place, body: worker("written", "one") });
  await replace({ ...stale, spec: { image: "two" } });
  await refused("conflict", replace({ ...stale, spec: { image: "three" } }));
  tell("written", { object: await replace({ ...(await read("written")), spec: { image: "three" } }) });
  await apply(worker("applied", "one"), "first", false);
  await refused("refused", apply(worker("applied", "two"), "second", false));
  tell("applied", { object: await apply(worker("applied", "two"), "second", true) });
}

const byName = (objects) => Object.fromEntries(objects.map((object) => [object.metadata.name, object]));

let initial;

async function list() {
  const listed = await api.listNamespacedCustomObject(place);
  // What is listed first is told of here: an informer takes it for events.
  tell("listed", { objects: byName(listed.items), resourceVersion: listed.metadata.resourceVersion });
  initial ??= new Set(listed.items.map((object) => object.metadata.uid));
  return listed;
}

async function follow() {
  const path = `/apis/${API_VERSION}/namespaces/${namespace}/localworkers`;
  const informer = new ListWatch(path, new Watch(config), list, false);
  const seen = new Promise((resolve) => {
    const told = (type) => (object) => {
      if (type === "ADDED" && initial.delete(object.metadata.uid)) return;
      tell("event", { type, object });
      if (object.metadata.name === "last") resolve();
    };
    informer.on("add", told("ADDED"));
    informer.on("update", told("MODIFIED"));
    informer.on("delete", told("DELETED"));
    informer.on("error", async (error) => {
      tell("broken", { error: String(error) });
      await setTimeout(RETRY_MILLISECONDS);
      await informer.start();
    });
  });
  await informer.start();
  await seen;
  tell("end", { objects: byName(informer.list(namespace)) });
}

await write();
await follow();
process.exit(); // its connections are kept alive, and so would be the program
