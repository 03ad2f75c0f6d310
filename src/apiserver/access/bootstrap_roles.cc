// The facts of the bootstrap policy of Kubernetes 1.34, as text:
//
//   role NAME [+LABEL...] [<LABEL...]     has these aggregation labels; gathers these
//    VERBS GROUPS RESOURCES [NAMES]       a rule; "" is the core group
//    VERBS url PATHS
//   bind NAME CLUSTERROLE [KIND:SUBJECT...]
//
// A line that ends with a comma or a backslash goes on in the next.
#include "apiserver/access/bootstrap_roles.h"

namespace skiff::apiserver {
namespace {

constexpr std::string_view kRoles = R"(
role admin <aggregate-to-admin
role cluster-admin
 * * *
 * url *
role edit +aggregate-to-admin <aggregate-to-edit
role system:aggregate-to-admin +aggregate-to-admin
 create authorization.k8s.io localsubjectaccessreviews
 create,delete,deletecollection,get,list,patch,update,
   watch rbac.authorization.k8s.io rolebindings,roles
role system:aggregate-to-edit +aggregate-to-edit
 get,list,watch "" pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy
 impersonate "" serviceaccounts
 create,delete,deletecollection,patch,update "" pods,pods/attach,pods/exec,pods/portforward,
   pods/proxy
 create "" pods/eviction
 create,delete,deletecollection,patch,update "" configmaps,events,persistentvolumeclaims,
   replicationcontrollers,replicationcontrollers/scale,secrets,serviceaccounts,services,
   services/proxy
 create "" serviceaccounts/token
 create,delete,deletecollection,patch,update apps daemonsets,deployments,deployments/rollback,
   deployments/scale,replicasets,replicasets/scale,statefulsets,statefulsets/scale
 create,delete,deletecollection,patch,update autoscaling horizontalpodautoscalers
 create,delete,deletecollection,patch,update batch cronjobs,jobs
 create,delete,deletecollection,patch,update extensions daemonsets,deployments,
   deployments/rollback,deployments/scale,ingresses,networkpolicies,replicasets,replicasets/scale,
   replicationcontrollers/scale
 create,delete,deletecollection,patch,update policy poddisruptionbudgets
 create,delete,deletecollection,patch,update networking.k8s.io ingresses,networkpolicies
 create,delete,deletecollection,get,list,patch,update,watch coordination.k8s.io leases
 create,delete,deletecollection,patch,update resource.k8s.io resourceclaims,resourceclaimtemplates
role system:aggregate-to-view +aggregate-to-view
 get,list,watch "" configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/status,pods,
   replicationcontrollers,replicationcontrollers/scale,serviceaccounts,services,services/status
 get,list,watch "" bindings,events,limitranges,namespaces/status,pods/log,pods/status,
   replicationcontrollers/status,resourcequotas,resourcequotas/status
 get,list,watch "" namespaces
 get,list,watch discovery.k8s.io endpointslices
 get,list,watch apps controllerrevisions,daemonsets,daemonsets/status,deployments,
   deployments/scale,deployments/status,replicasets,replicasets/scale,replicasets/status,
   statefulsets,statefulsets/scale,statefulsets/status
 get,list,watch autoscaling horizontalpodautoscalers,horizontalpodautoscalers/status
 get,list,watch batch cronjobs,cronjobs/status,jobs,jobs/status
 get,list,watch extensions daemonsets,daemonsets/status,deployments,deployments/scale,
   deployments/status,ingresses,ingresses/status,networkpolicies,replicasets,replicasets/scale,
   replicasets/status,replicationcontrollers/scale
 get,list,watch policy poddisruptionbudgets,poddisruptionbudgets/status
 get,list,watch networking.k8s.io ingresses,ingresses/status,networkpolicies
 get,list,watch resource.k8s.io resourceclaims,resourceclaims/status,resourceclaimtemplates
role system:auth-delegator
 create authentication.k8s.io tokenreviews
 create authorization.k8s.io subjectaccessreviews
role system:basic-user
 create authorization.k8s.io selfsubjectaccessreviews,selfsubjectrulesreviews
 create authentication.k8s.io selfsubjectreviews
role system:certificates.k8s.io:certificatesigningrequests:nodeclient
 create certificates.k8s.io certificatesigningrequests/nodeclient
role system:certificates.k8s.io:certificatesigningrequests:selfnodeclient
 create certificates.k8s.io certificatesigningrequests/selfnodeclient
role system:certificates.k8s.io:kube-apiserver-client-approver
 approve certificates.k8s.io signers kubernetes.io/kube-apiserver-client
role system:certificates.k8s.io:kube-apiserver-client-kubelet-approver
 approve certificates.k8s.io signers kubernetes.io/kube-apiserver-client-kubelet
role system:certificates.k8s.io:kubelet-serving-approver
 approve certificates.k8s.io signers kubernetes.io/kubelet-serving
role system:certificates.k8s.io:legacy-unknown-approver
 approve certificates.k8s.io signers kubernetes.io/legacy-unknown
role system:discovery
 get url /api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/version,/version/
role system:heapster
 get,list,watch "" events,namespaces,nodes,pods
 get,list,watch extensions deployments
role system:kube-aggregator
 get,list,watch "" endpoints,services
role system:kube-controller-manager
 create,patch,update "",events.k8s.io events
 create coordination.k8s.io leases
 get,update coordination.k8s.io leases kube-controller-manager
 create "" secrets,serviceaccounts
 delete "" secrets
 get "" configmaps,namespaces,secrets,serviceaccounts
 update "" secrets,serviceaccounts
 create authentication.k8s.io tokenreviews
 create authorization.k8s.io subjectaccessreviews
 list,watch * *
 create "" serviceaccounts/token
role system:kube-dns
 list,watch "" endpoints,services
role system:kube-scheduler
 create,patch,update "",events.k8s.io events
 create coordination.k8s.io leases
 get,list,update,watch coordination.k8s.io leases kube-scheduler
 create,delete,deletecollection,get,list,patch,update,watch coordination.k8s.io leasecandidates
 get,list,watch "" nodes
 delete,get,list,watch "" pods
 create "" bindings,pods/binding
 patch,update "" pods/status
 get,list,watch "" replicationcontrollers,services
 get,list,watch apps,extensions replicasets
 get,list,watch apps statefulsets
 get,list,watch policy poddisruptionbudgets
 get,list,watch "" persistentvolumeclaims,persistentvolumes
 create authentication.k8s.io tokenreviews
 create authorization.k8s.io subjectaccessreviews
 get,list,watch storage.k8s.io csinodes
 get,list,watch storage.k8s.io volumeattachments
 get,list,watch "" namespaces
 get,list,watch storage.k8s.io csidrivers
 get,list,watch storage.k8s.io csistoragecapacities
 get,list,watch resource.k8s.io deviceclasses
 get,list,patch,update,watch resource.k8s.io resourceclaims
 get,list,patch,update,watch resource.k8s.io resourceclaims/status
 update "" pods/finalizers
 get,list,watch resource.k8s.io resourceslices
role system:kubelet-api-admin
 get,list,watch "" nodes
 proxy "" nodes
 * "" nodes/log,nodes/metrics,nodes/proxy,nodes/stats
 * "" nodes/configz,nodes/healthz,nodes/pods
role system:monitoring
 get url /healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,/readyz,/readyz/*
 get "" nodes/metrics
role system:node
 create authentication.k8s.io tokenreviews
 create authorization.k8s.io localsubjectaccessreviews,subjectaccessreviews
 get,list,watch "" services
 create,get,list,watch "" nodes
 patch,update "" nodes/status
 patch,update "" nodes
 create,patch,update "" events
 get,list,watch "" pods
 create,delete "" pods
 patch,update "" pods/status
 create "" pods/eviction
 get,list,watch "" configmaps,secrets
 get "" persistentvolumeclaims,persistentvolumes
 get "" endpoints
 create,get,list,watch certificates.k8s.io certificatesigningrequests
 create,delete,get,patch,update coordination.k8s.io leases
 get storage.k8s.io volumeattachments
 create "" serviceaccounts/token
 get,patch,update "" persistentvolumeclaims/status
 get,list,watch storage.k8s.io csidrivers
 create,delete,get,patch,update storage.k8s.io csinodes
 get,list,watch node.k8s.io runtimeclasses
 get resource.k8s.io resourceclaims
 deletecollection resource.k8s.io resourceslices
 get "" serviceaccounts
role system:node-bootstrapper
 create,get,list,watch certificates.k8s.io certificatesigningrequests
role system:node-problem-detector
 get "" nodes
 patch "" nodes/status
 create,patch,update "",events.k8s.io events
role system:node-proxier
 list,watch "" endpoints,services
 get,list,watch "" nodes
 create,patch,update "",events.k8s.io events
 list,watch networking.k8s.io servicecidrs
 list,watch discovery.k8s.io endpointslices
role system:persistent-volume-provisioner
 create,delete,get,list,watch "" persistentvolumes
 get,list,update,watch "" persistentvolumeclaims
 get,list,watch storage.k8s.io storageclasses
 watch "" events
 create,patch,update "",events.k8s.io events
role system:public-info-viewer
 get url /healthz,/livez,/readyz,/version,/version/
role system:service-account-issuer-discovery
 get url /.well-known/openid-configuration,/.well-known/openid-configuration/,/openid/v1/jwks,
   /openid/v1/jwks/
role system:volume-scheduler
 get,list,patch,update,watch "" persistentvolumes
 get,list,watch storage.k8s.io storageclasses
 get,list,patch,update,watch "" persistentvolumeclaims
role view +aggregate-to-edit <aggregate-to-view
bind cluster-admin cluster-admin Group:system:masters
bind system:basic-user system:basic-user Group:system:authenticated
bind system:discovery system:discovery Group:system:authenticated
bind system:kube-controller-manager system:kube-controller-manager \
   User:system:kube-controller-manager
bind system:kube-dns system:kube-dns ServiceAccount:kube-system/kube-dns
bind system:kube-scheduler system:kube-scheduler User:system:kube-scheduler
bind system:monitoring system:monitoring Group:system:monitoring
bind system:node system:node
bind system:node-proxier system:node-proxier User:system:kube-proxy
bind system:public-info-viewer system:public-info-viewer \
   Group:system:authenticated Group:system:unauthenticated
bind system:service-account-issuer-discovery system:service-account-issuer-discovery \
   Group:system:serviceaccounts
bind system:volume-scheduler system:volume-scheduler User:system:kube-scheduler)";

}  // namespace

std::string_view bootstrap_roles() { return kRoles; }

}  // namespace skiff::apiserver
