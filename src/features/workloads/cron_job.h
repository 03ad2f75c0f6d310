// CronJob: a Job at each time that its schedule names.
#pragma once

#include <functional>
#include <string>

#include "base/time_zone.h"
#include "control/controller.h"

namespace skiff::workloads {

// The rules of a zone by its name; an error where nobody knows it.
using Zones = std::function<Result<TimeZone>(const std::string& name)>;

const api::Resource& cron_job_resource();

control::Plan plan_cron_job(const control::Observed& observed, Time now, const Zones& zones);
control::Controller cron_job_controller(Zones zones);

}  // namespace skiff::workloads
