import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.GenericKubernetesResourceList;
import io.fabric8.kubernetes.api.model.HasMetadata;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.dsl.NonNamespaceOperation;
import io.fabric8.kubernetes.client.dsl.Resource;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;

/**
 * The client of fabric8: conflict, apply, and an informer that goes on after its connection broke. It tells what it sees in lines of JSON,
 * of which the test makes up its mind. It ends when it has seen an object called last.
 */
public final class Client {
  private static final String API_VERSION = "worker.saved.sh/v1alpha1";
  private static final String KIND = "LocalWorker";

  private final NonNamespaceOperation<GenericKubernetesResource, GenericKubernetesResourceList, Resource<GenericKubernetesResource>> workers;

  private Client(KubernetesClient client, String namespace) {
    workers = client.genericKubernetesResources(API_VERSION, KIND).inNamespace(namespace);
  }

  public static void main(String[] arguments) throws Exception {
    try (KubernetesClient client = new KubernetesClientBuilder().build()) {
      Client ours = new Client(client, arguments[0]);
      ours.conflict();
      ours.apply();
      ours.follow();
    }
  }

  private void conflict() {
    GenericKubernetesResource stale = workers.resource(worker("written", "one")).create();
    replace(stale, "two");
    refused("conflict", () -> replace(stale, "three"));
    tell("written", Map.of("object", replace(workers.withName("written").get(), "three")));
  }

  private void apply() {
    workers.resource(worker("applied", "one")).fieldManager("first").serverSideApply();
    GenericKubernetesResource changed = worker("applied", "two");
    refused("refused", () -> workers.resource(changed).fieldManager("second").serverSideApply());
    tell("applied", Map.of("object", workers.resource(changed).fieldManager("second").forceConflicts().serverSideApply()));
  }

  private void follow() throws InterruptedException {
    GenericKubernetesResourceList listed = workers.list();
    tell("listed", Map.of("objects", byName(listed.getItems()), "resourceVersion", listed.getMetadata().getResourceVersion()));
    Set<String> known = listed.getItems().stream().map(object -> object.getMetadata().getUid()).collect(Collectors.toSet());
    CountDownLatch last = new CountDownLatch(1);
    var informer = workers.inform(new ResourceEventHandler<>() {
      @Override
      public void onAdd(GenericKubernetesResource added) {
        if (!known.remove(added.getMetadata().getUid())) {
          told("ADDED", added);
        }
        if (added.getMetadata().getName().equals("last")) {
          last.countDown();
        }
      }

      @Override
      public void onUpdate(GenericKubernetesResource old, GenericKubernetesResource updated) {
        told("MODIFIED", updated);
      }

      @Override
      public void onDelete(GenericKubernetesResource deleted, boolean unknown) {
        told("DELETED", deleted);
      }
    });
    last.await();
    tell("end", Map.of("objects", byName(informer.getStore().list())));
    informer.close();
  }

  private GenericKubernetesResource replace(GenericKubernetesResource found, String image) {
    GenericKubernetesResource changed = worker("", image);
    changed.setMetadata(found.getMetadata());
    return workers.resource(changed).lockResourceVersion(found.getMetadata().getResourceVersion()).update();
  }

  private static GenericKubernetesResource worker(String name, String image) {
    GenericKubernetesResource worker = new GenericKubernetesResource();
    worker.setApiVersion(API_VERSION);
    worker.setKind(KIND);
    worker.setMetadata(new ObjectMetaBuilder().withName(name).build());
    worker.setAdditionalProperty("spec", Map.of("image", image));
    return worker;
  }

  private static Map<String, HasMetadata> byName(List<? extends HasMetadata> objects) {
    Map<String, HasMetadata> named = new LinkedHashMap<>();
    objects.forEach(object -> named.put(object.getMetadata().getName(), object));
    return named;
  }

  private static void refused(String step, Runnable request) {
    try {
      request.run();
    } catch (KubernetesClientException refusal) {
      tell(step, Map.of("code", refusal.getCode(), "reason", refusal.getStatus().getReason()));
    }
  }

  private static void told(String type, HasMetadata object) {
    tell("event", Map.of("type", type, "object", object));
  }

  private static synchronized void tell(String step, Map<String, ?> fields) {
    Map<String, Object> line = new LinkedHashMap<>();
    line.put("step", step);
    line.putAll(fields);
    System.out.println(Serialization.asJson(line).replace("\n", ""));
  }
}
