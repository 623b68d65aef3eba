/* simdjson_peer.cc: the order's three fields by simdjson, on-demand and DOM. @thread init */
#include "bench/shim/simdjson_peer.h"

#include <simdjson.h>

struct weir_simdjson {
	simdjson::ondemand::parser on_demand;
	simdjson::dom::parser dom;
};

extern "C" struct weir_simdjson *weir_simdjson_create(void)
{
	return new weir_simdjson;
}

extern "C" void weir_simdjson_destroy(struct weir_simdjson *sj)
{
	delete sj;
}

extern "C" const char *weir_simdjson_implementation(void)
{
	static std::string name = simdjson::get_active_implementation()->name();
	return name.c_str();
}

extern "C" bool weir_simdjson_on_demand(struct weir_simdjson *sj, const void *data, size_t bytes,
					struct weir_simdjson_order *out)
{
	simdjson::ondemand::document doc;
	simdjson::ondemand::object object;
	std::string_view merchant;
	if (sj->on_demand.iterate(static_cast<const char *>(data), bytes, bytes + simdjson::SIMDJSON_PADDING)
		    .get(doc) ||
	    doc.get_object().get(object) || object["merchant_id"].get_string().get(merchant) ||
	    object["amount"].get_double().get(out->amount) || object["ts"].get_int64().get(out->ts))
		return false;
	out->merchant_id = merchant.data();
	out->merchant_id_bytes = merchant.size();
	return true;
}

extern "C" bool weir_simdjson_dom(struct weir_simdjson *sj, const void *data, size_t bytes,
				  struct weir_simdjson_order *out)
{
	simdjson::dom::element doc;
	std::string_view merchant;
	if (sj->dom.parse(static_cast<const char *>(data), bytes, false).get(doc) || doc["merchant_id"].get(merchant) ||
	    doc["amount"].get(out->amount) || doc["ts"].get(out->ts))
		return false;
	out->merchant_id = merchant.data();
	out->merchant_id_bytes = merchant.size();
	return true;
}
