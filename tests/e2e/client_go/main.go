// A user's day with client-go: typed and dynamic informers, leader election, server-side apply,
// scale, paging, conflicts, reviews, tokens. Exits with 1 and a sentence at the first surprise.
//
//	client_go KUBECONFIG [protobuf]
package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authn "k8s.io/api/authentication/v1"
	authz "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/tools/record"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"
)

var (
	ctx = context.Background()
	ns  = "day"
	tfs = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"}
)

func must(err error, what string) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
		os.Exit(1)
	}
}

func check(ok bool, what string, args ...any) {
	if !ok {
		fmt.Fprintf(os.Stderr, what+"\n", args...)
		os.Exit(1)
	}
}

func eventually(what string, ok func() bool) {
	end := time.Now().Add(30 * time.Second)
	for !ok() {
		check(time.Now().Before(end), "not within 30 s: %s", what)
		time.Sleep(20 * time.Millisecond)
	}
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	must(err, "kubeconfig")
	config.QPS, config.Burst = 1000, 1000
	typedConfig := rest.CopyConfig(config)
	if len(os.Args) > 2 {
		ns = "day-protobuf"
		typedConfig.ContentType = "application/vnd.kubernetes.protobuf"
		typedConfig.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	client := kubernetes.NewForConfigOrDie(typedConfig)
	dyn := dynamic.NewForConfigOrDie(config)

	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
	must(err, "namespace")
	steps := []struct {
		name string
		run  func()
	}{
		{"discovery", func() { discover(client) }},
		{"typed informers", func() { typedInformers(client) }},
		{"dynamic informers", func() { dynamicInformers(dyn) }},
		{"conflicts", func() { conflicts(client) }},
		{"apply", func() { apply(client) }},
		{"scale", func() { scale(client) }},
		{"pages", func() { pages(client) }},
		{"metadata", func() { metadataClient(config) }},
		{"leader election", func() { leaders(client) }},
		{"events", func() { events(client) }},
		{"access", func() { access(client, config) }},
		{"watch until", func() { watchUntil(client) }},
		{"namespace end", func() { end(client) }},
	}
	for _, step := range steps {
		start := time.Now()
		step.run()
		fmt.Printf("%-18s ok  %v\n", step.name, time.Since(start).Round(time.Millisecond))
	}
}

func discover(client *kubernetes.Clientset) {
	version, err := client.Discovery().ServerVersion()
	must(err, "version")
	check(version.Major == "1", "major version is %q", version.Major)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	for kind, want := range map[string]schema.GroupVersionResource{
		"TFJob": tfs, "Deployment": {Group: "apps", Version: "v1", Resource: "deployments"}, "Pod": {Version: "v1", Resource: "pods"}} {
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: want.Group, Kind: kind})
		must(err, "mapping of "+kind)
		check(mapping.Resource == want, "%s is %v", kind, mapping.Resource)
	}
	lists, err := client.Discovery().ServerPreferredResources()
	must(err, "preferred resources")
	check(len(lists) > 10, "only %d groups", len(lists))
}

func typedInformers(client *kubernetes.Clientset) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(ns))
	informer := factory.Core().V1().ConfigMaps()
	var lock sync.Mutex
	seen := map[string]int{}
	count := func(kind string) func(any) {
		return func(any) { lock.Lock(); seen[kind]++; lock.Unlock() }
	}
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: count("add"), UpdateFunc: func(_, o any) { count("update")(o) }, DeleteFunc: count("delete")})
	must(err, "handler")
	_ = factory.Core().V1().Pods().Informer()
	_ = factory.Apps().V1().Deployments().Informer()
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	for kind, synced := range factory.WaitForCacheSync(stop) {
		check(synced, "%v does not sync", kind)
	}
	maps := client.CoreV1().ConfigMaps(ns)
	for i := 0; i < 20; i++ {
		one, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%d", i), Labels: map[string]string{"n": fmt.Sprint(i % 2)}}, Data: map[string]string{"a": "b"}, BinaryData: map[string][]byte{"x": {0, 255}}}, metav1.CreateOptions{})
		must(err, "create")
		one.Data["a"] = "c"
		_, err = maps.Update(ctx, one, metav1.UpdateOptions{})
		must(err, "update")
	}
	must(maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "n=1"}), "delete collection")
	eventually("all events", func() bool {
		lock.Lock()
		defer lock.Unlock()
		return seen["add"] >= 20 && seen["update"] >= 20 && seen["delete"] >= 10
	})
	one, err := informer.Lister().ConfigMaps(ns).Get("c0")
	must(err, "lister")
	check(one.Data["a"] == "c" && one.BinaryData["x"][1] == 255, "the cache has %v", one)
	_, err = maps.Get(ctx, "c1", metav1.GetOptions{})
	check(errors.IsNotFound(err), "c1: %v", err)
}

func dynamicInformers(dyn *dynamic.DynamicClient) {
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dyn, 0, ns, nil)
	informer := factory.ForResource(tfs)
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	job := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": map[string]any{"name": "job"},
		"spec": map[string]any{"runPolicy": map[string]any{"suspend": true}, "tfReplicaSpecs": map[string]any{"Worker": map[string]any{"replicas": int64(1),
			"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "tensorflow", "image": "skiff.dev/host", "command": []any{"true"}}}}}}}}}}
	jobs := dyn.Resource(tfs).Namespace(ns)
	_, err := jobs.Create(ctx, job, metav1.CreateOptions{})
	must(err, "create TFJob")
	eventually("the informer sees the job", func() bool { _, err := informer.Lister().ByNamespace(ns).Get("job"); return err == nil })
	_, err = jobs.Patch(ctx, "job", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	must(err, "patch")
	eventually("the informer sees the label", func() bool {
		one, err := informer.Lister().ByNamespace(ns).Get("job")
		return err == nil && one.(*unstructured.Unstructured).GetLabels()["a"] == "b"
	})
	must(jobs.Delete(ctx, "job", metav1.DeleteOptions{}), "delete")
	eventually("the informer sees it go", func() bool { _, err := informer.Lister().ByNamespace(ns).Get("job"); return errors.IsNotFound(err) })
}

func conflicts(client *kubernetes.Clientset) {
	maps := client.CoreV1().ConfigMaps(ns)
	_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "counter"}, Data: map[string]string{"n": "0"}}, metav1.CreateOptions{})
	must(err, "create")
	var wait sync.WaitGroup
	for w := 0; w < 4; w++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := 0; i < 10; i++ {
				must(retry.OnError(retry.DefaultBackoff, errors.IsConflict, func() error {
					for {
						one, err := maps.Get(ctx, "counter", metav1.GetOptions{})
						if err != nil {
							return err
						}
						var n int
						fmt.Sscan(one.Data["n"], &n)
						one.Data["n"] = fmt.Sprint(n + 1)
						if _, err = maps.Update(ctx, one, metav1.UpdateOptions{}); !errors.IsConflict(err) {
							return err
						}
					}
				}), "update")
			}
		}()
	}
	wait.Wait()
	one, err := maps.Get(ctx, "counter", metav1.GetOptions{})
	must(err, "get")
	check(one.Data["n"] == "40", "40 increments made %s", one.Data["n"])
}

func apply(client *kubernetes.Clientset) {
	maps := client.CoreV1().ConfigMaps(ns)
	config := applycore.ConfigMap("applied", ns).WithData(map[string]string{"a": "1"})
	_, err := maps.Apply(ctx, config, metav1.ApplyOptions{FieldManager: "ann"})
	must(err, "apply")
	_, err = maps.Apply(ctx, applycore.ConfigMap("applied", ns).WithData(map[string]string{"a": "2"}), metav1.ApplyOptions{FieldManager: "bob"})
	check(errors.IsConflict(err), "a conflict, not %v", err)
	one, err := maps.Apply(ctx, applycore.ConfigMap("applied", ns).WithData(map[string]string{"a": "2"}), metav1.ApplyOptions{FieldManager: "bob", Force: true})
	must(err, "forced apply")
	check(one.Data["a"] == "2", "applied %v", one.Data)
	mine, err := applycore.ExtractConfigMap(one, "bob")
	must(err, "extract")
	check(mine.Data["a"] == "2", "bob owns %v", mine.Data)
}

func scale(client *kubernetes.Clientset) {
	labels := map[string]string{"app": "x"}
	deployments := client.AppsV1().Deployments(ns)
	_, err := deployments.Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}}}}}, metav1.CreateOptions{})
	must(err, "deployment")
	// A controller may write its status in between.
	must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current, err := deployments.GetScale(ctx, "web", metav1.GetOptions{})
		must(err, "get scale")
		check(current.Spec.Replicas == 1 && current.Status.Selector == "app=x", "scale is %v", current)
		current.Spec.Replicas = 3
		_, err = deployments.UpdateScale(ctx, "web", current, metav1.UpdateOptions{})
		return err
	}), "update scale")
	// The second is ours; the third is the controller's, when it notes its revision.
	one, err := deployments.Get(ctx, "web", metav1.GetOptions{})
	must(err, "get")
	check(*one.Spec.Replicas == 3 && (one.Generation == 2 || one.Generation == 3), "replicas %d, generation %d", *one.Spec.Replicas, one.Generation)
}

func pages(client *kubernetes.Clientset) {
	seen := 0
	lister := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (o runtime.Object, err error) {
		return client.CoreV1().ConfigMaps(ns).List(ctx, options)
	}))
	lister.PageSize = 3
	must(lister.EachListItem(ctx, metav1.ListOptions{}, func(runtime.Object) error { seen++; return nil }), "pages")
	whole, err := client.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{})
	must(err, "list")
	check(seen == len(whole.Items) && seen > 9, "%d by pages, %d at once", seen, len(whole.Items))
}

func metadataClient(config *rest.Config) {
	client := metadata.NewForConfigOrDie(config)
	list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(ns).List(ctx, metav1.ListOptions{})
	must(err, "metadata list")
	check(len(list.Items) > 0 && list.Items[0].Name != "", "metadata of %d", len(list.Items))
}

func leaders(client *kubernetes.Clientset) {
	run := func(id string, led chan string) context.CancelFunc {
		inner, cancel := context.WithCancel(ctx)
		lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Name: "lead", Namespace: ns}, Client: client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: id}}
		go leaderelection.RunOrDie(inner, leaderelection.LeaderElectionConfig{Lock: lock, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { led <- id }, OnStoppedLeading: func() {}}})
		return cancel
	}
	led := make(chan string, 2)
	stopFirst := run("first", led)
	check(<-led == "first", "the first does not lead")
	stopSecond := run("second", led)
	time.Sleep(time.Second)
	check(len(led) == 0, "two leaders")
	stopFirst()
	check(<-led == "second", "the second does not follow")
	stopSecond()
}

func events(client *kubernetes.Clientset) {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: client.CoreV1().Events(ns)})
	defer broadcaster.Shutdown()
	one, err := client.CoreV1().ConfigMaps(ns).Get(ctx, "applied", metav1.GetOptions{})
	must(err, "get")
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "day"})
	for i := 0; i < 3; i++ {
		recorder.Event(one, corev1.EventTypeNormal, "Tried", "it works")
	}
	eventually("one event with a count", func() bool {
		list, err := client.CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=applied"})
		must(err, "events")
		return len(list.Items) == 1 && list.Items[0].Count == 3
	})
	list, err := client.EventsV1().Events(ns).List(ctx, metav1.ListOptions{})
	must(err, "events.k8s.io")
	check(len(list.Items) > 0, "no events in the new group")
}

func access(client *kubernetes.Clientset, config *rest.Config) {
	_, err := client.RbacV1().Roles(ns).Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}}}, metav1.CreateOptions{})
	must(err, "role")
	_, err = client.RbacV1().RoleBindings(ns).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "reader"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default", Namespace: ns}}}, metav1.CreateOptions{})
	must(err, "binding")
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authz.SelfSubjectAccessReview{Spec: authz.SelfSubjectAccessReviewSpec{ResourceAttributes: &authz.ResourceAttributes{Verb: "create", Resource: "pods", Namespace: ns}}}, metav1.CreateOptions{})
	must(err, "review")
	check(review.Status.Allowed, "the administrator may not: %v", review.Status)
	eventually("the service account", func() bool {
		_, err := client.CoreV1().ServiceAccounts(ns).Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
	token, err := client.CoreV1().ServiceAccounts(ns).CreateToken(ctx, "default", &authn.TokenRequest{}, metav1.CreateOptions{})
	must(err, "token")
	other := rest.AnonymousClientConfig(config)
	other.BearerToken = token.Status.Token
	account := kubernetes.NewForConfigOrDie(other)
	_, err = account.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{})
	must(err, "list by the service account")
	err = account.CoreV1().ConfigMaps(ns).Delete(ctx, "applied", metav1.DeleteOptions{})
	check(errors.IsForbidden(err), "forbidden, not %v", err)
	self, err := account.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authn.SelfSubjectReview{}, metav1.CreateOptions{})
	must(err, "who am I")
	check(self.Status.UserInfo.Username == "system:serviceaccount:"+ns+":default", "I am %s", self.Status.UserInfo.Username)
}

func watchUntil(client *kubernetes.Clientset) {
	maps := client.CoreV1().ConfigMaps(ns)
	go func() {
		time.Sleep(200 * time.Millisecond)
		_, err := maps.Patch(ctx, "counter", types.StrategicMergePatchType, []byte(`{"data":{"n":"done"}}`), metav1.PatchOptions{})
		must(err, "patch")
	}()
	inner, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	source := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", ns, fields.OneTermEqualSelector("metadata.name", "counter"))
	_, err := watchtools.UntilWithSync(inner, source, &corev1.ConfigMap{}, nil, func(event watch.Event) (bool, error) {
		return event.Object.(*corev1.ConfigMap).Data["n"] == "done", nil
	})
	must(err, "watch")
}

func end(client *kubernetes.Clientset) {
	policy := metav1.DeletePropagationForeground
	must(client.CoreV1().Namespaces().Delete(ctx, ns, metav1.DeleteOptions{PropagationPolicy: &policy}), "delete namespace")
	eventually("the namespace is gone", func() bool {
		_, err := client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
		return errors.IsNotFound(err)
	})
}
